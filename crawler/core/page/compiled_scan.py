"""The compiled version of `scan_tree`, of what is made of its lines, and of two loops over text; see compiled_scan.c.

scripts/compile_reader.py makes the library, where there is a C compiler. Everything here works without it, in Python.
`describe_reader` says which one is used. The library is loaded at the first use.
"""

import ctypes
import re
import sysconfig
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from selectolax.lexbor import LexborHTMLParser

from crawler.core.page import page_cost, scan, text_words
from crawler.core.page.reader_choice import PYTHON, VARIABLE, is_python_chosen
from crawler.core.page.scan import PageScan, Pointer, Record, RecordKind
from crawler.core.page.text_words import WordHashes

_FOLDER = Path(__file__).parent
SOURCES = (
    _FOLDER / "compiled_scan.c",
    _FOLDER / "main_content" / "compiled_scores.c",
)  # as in scripts/compile_reader.py

_MODULES = ("selectolax.lexbor", "xxhash._xxhash")
# In the order of `Functions` in compiled_scan.c.
_LEXBOR_FUNCTIONS = (
    "lexbor_realloc",
    "lexbor_free",
    "lxb_dom_node_first_child_noi",
    "lxb_dom_node_next_noi",
    "lxb_dom_node_parent_noi",
    "lxb_dom_node_type_noi",
    "lxb_dom_node_tag_id_noi",
    "lxb_dom_element_qualified_name",
    "lxb_dom_element_first_attribute_noi",
    "lxb_dom_element_next_attribute_noi",
    "lxb_dom_attr_qualified_name",
    "lxb_dom_attr_value_noi",
    "lxb_dom_node_text_content",
    "lxb_dom_document_destroy_text_noi",
)
_TAG_FLAGS = (
    scan.BLOCK_TAGS,
    scan.HIDDEN_TAGS,
    scan.BOILERPLATE_TAGS,
    scan.CONTENT_TAGS,
    scan.PREFORMATTED_TAGS,
    scan.FILLED_TAGS,
    scan.FILLED_TAGS_WITH_ID,
)
_TAGS = sorted(scan.OPENED_TAGS)
_BOX_TAGS = ("", *_TAGS)
_VALUE_COUNTS: dict[int, int] = {
    RecordKind.TITLE: 2,
    RecordKind.META: 5,
    RecordKind.LINK: 3,
    RecordKind.IMAGE: 3,
    RecordKind.SCRIPT: 1,  # and its text
    RecordKind.BLANK: 1,
}
# The buffers of a scan, in the order of compiled_scan.c: bytes, integers, strings, and the texts made of them.
_BOX_TAGS_AT, _BOX_FLAGS, _FOLLOWED, _RECORD_KINDS = range(4)
_BOX_PARENTS, _BOX_ENDS, _LINE_BOXES, _LINE_CHARS, _LINE_LINK_CHARS, _POINTERS = range(4, 10)
_BOX_CLASSES, _BOX_HINTS, _TEXTS, _MARKED, _ANCHORS, _RECORD_VALUES, _BASE, _LANGUAGE = range(10, 18)
_SCRIPTS, _WHOLE, _MAIN, _RESTORED, _SHAPE, _READING, _PATHS = 19, 20, 21, 22, 23, 28, 29
_BUFFERS = 30
_CHARACTERS, _UNKNOWN = 0x2200, 0xFFFF  # as in compiled_scan.c
_WORD_CHARACTER = re.compile(r"\w")
_WITHOUT_LOWERCASE = {0x130: None, 0x3A3: None}  # one has two characters, the other depends on the letters around it
# The address, length and size of each buffer; then signs, failure and characters:
_Scan = ctypes.c_size_t * (3 * _BUFFERS + 3)
_new_pointer: Callable[[Collection[int]], Pointer] = partial(tuple.__new__, Pointer)
_new_record: Callable[[Collection[Any]], Record] = partial(tuple.__new__, Record)

_SAMPLE = """<html lang=en><title> A\0 page</title><meta name=robots content=noindex><base href=/b>
<link rel=next href=2><script>let a = "b"</script>
<body><nav id=n role=Search><a href=/x rel="nofollow">one <b>two</b></a></nav>
<main><h1>Two\t words\3</h1><p class=c>text<br>more <em>of\xa0it</em> \u65e5\u672c<img src=i alt=t>
<a href=y hreflang=de rel=Alternate>z</a>
<pre><code class=language-c>int  a;\n</code></pre><div hidden>no</div><div style="Display : none">no</div><ul id=e></ul>
<p hidden id=Tab-2>yes</p><p hidden id=S:1>yes</p><p hidden=until-found>yes</p>
<div id=root></div><noscript>Please turn on your scripts</noscript><input type=password><svg><title>s</title></svg>"""


class _Settings(ctypes.Structure):
    _fields_ = (
        ("functions", ctypes.c_void_p),
        *(
            (name, ctypes.c_char_p)
            for name in ("tags", "root_ids", "boilerplate_roles", "placeholder_classes", "opened_parts", "link_marks")
        ),
        ("tag_flags", ctypes.c_void_p),
        ("cost_tags", ctypes.c_char_p),
        ("cost_flags", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("max_root_chars", "min_message_words", "max_message_chars")),
        *(
            (name, ctypes.c_int)
            for name in ("max_data_chars", "tree_steps", "formatted_nodes", "many_attributes_chars")
        ),
        ("unspaced", ctypes.c_void_p),
        ("lower", ctypes.c_void_p),
    )


class _Unusable(Exception):
    """The library cannot be used. The message says why, after "Python, because"."""


class _Reader(Struct):
    """Which version reads pages. library: None if it is not loaded.  problem: why it is not used; None if not known."""

    library: ctypes.CDLL | None = None
    problem: str | None = None
    kept: list[object] = field(default_factory=list)  # what the library refers to, also after it is loaded again


_reader = _Reader()
_loading = Lock()  # the library's settings must not change while another thread uses them


def forget_library() -> None:
    """Let the next page decide again which version to use."""
    _reader.library = _reader.problem = None


def describe_reader() -> str:
    """Return which version reads pages: "compiled", or "Python, because ..."."""
    return "compiled" if load_library() is not None else f"Python, because {_reader.problem}"


def scan_tree(
    tree: LexborHTMLParser,
    *,
    ignored: Collection[int] = (),
    watched: Collection[int] | None = None,
    with_noscript: bool = False,
) -> PageScan:
    """Do the same as `scan.scan_tree`, in a fraction of the time where there is a library."""
    found = scan_compiled(tree, ignored=ignored, watched=watched, with_noscript=with_noscript)
    if found is None:
        return scan.scan_tree(tree, ignored=ignored, watched=watched, with_noscript=with_noscript)
    return found.build()


def scan_compiled(
    tree: LexborHTMLParser,
    *,
    ignored: Collection[int] = (),
    watched: Collection[int] | None = None,
    with_noscript: bool = False,
) -> "CompiledScan | None":
    """Do the same with the library, but make no objects yet; return None if there is no library."""
    library, root = load_library(), tree.root
    if library is None or root is None:
        return None
    return _scan(library, root.mem_id, ignored, watched, with_noscript=with_noscript)


def cut_to_affordable(source: str, data: bytes) -> bytes:
    """Return the start of a page that `page_cost.count_affordable_chars` finds, usually all.

    data: the source in UTF-8.
    """
    if len(source) <= page_cost.FREE_CHARS and data.count(b"<") <= page_cost.FREE_TAGS:
        return data
    library = load_library()
    count = -1
    if library is not None:
        max_tags = (page_cost.READING_BYTES - page_cost.BYTES_PER_CHAR * len(source)) // page_cost.BYTES_PER_TAG
        count = library.count_affordable_bytes(data, len(data), max_tags)
    if count < 0:
        chars = page_cost.count_affordable_chars(source)
        return data if chars == len(source) else source[:chars].encode("utf-8", "surrogatepass")
    return data if count == len(data) else data[:count]


def hash_words(text: str, *, max_words: int) -> WordHashes:
    """Do the same as `text_words.hash_text_words`."""
    library = load_library()
    if library is None:
        return text_words.hash_text_words(text, max_words=max_words)
    text = text.lower()
    data = (text if text.isascii() else text_words.NON_ASCII_SEPARATOR.sub(" ", text)).encode()
    most = min(len(data) // 2 + 1, max_words)
    hashes, marks = np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.uint8)
    count = library.hash_words(data, len(data), hashes.ctypes.data, marks.ctypes.data, most)
    return WordHashes(hashes[:count], marks[:count])


def load_library() -> ctypes.CDLL | None:
    """Load the library, unless it is loaded or cannot be used."""
    if not _is_decided():
        with _loading:
            if not _is_decided():  # another thread may have loaded it
                _load()
    return _reader.library


def _is_decided() -> bool:
    return _reader.library is not None or _reader.problem is not None


def _load() -> None:
    try:
        library, kept = _open_library()
        _reader.kept.append(kept)
        _check(library)
        _reader.library = library
    except _Unusable as error:
        _reader.problem = str(error)


def get_library_path() -> Path:
    """Return where scripts/compile_reader.py puts the library.

    The checksum ensures that a library of other sources is never loaded.
    """
    checksum = zlib.crc32(b"".join([source.read_bytes() for source in SOURCES]))
    return SOURCES[0].with_suffix(f".{checksum:08x}.{sysconfig.get_platform()}.so")


def _open_library() -> tuple[ctypes.CDLL, object]:
    if is_python_chosen():
        raise _Unusable(f"{VARIABLE} is {PYTHON}")
    path = get_library_path()
    if not path.exists():
        raise _Unusable("no C compiler was found when recrawl was installed")
    try:
        library = ctypes.CDLL(str(path))
        symbols, hashes = (ctypes.CDLL(import_module(name).__file__) for name in _MODULES)
        functions = [getattr(symbols, name) for name in _LEXBOR_FUNCTIONS] + [hashes.XXH3_64bits]
    except (OSError, AttributeError) as error:
        raise _Unusable(f"the compiled version cannot be loaded: {error}") from error
    addresses = (ctypes.c_void_p * len(functions))(*(ctypes.cast(function, ctypes.c_void_p) for function in functions))
    tag_flags = array("I", [_get_flags(tag, _TAG_FLAGS) | _get_marks(tag) for tag in _TAGS])
    cost_sets = (page_cost.FORMATTING_TAGS, page_cost.SHALLOW_TAGS, page_cost.RAW_TAGS, ("svg", "math"))
    cost_tags = sorted(frozenset().union(*cost_sets))
    cost_flags = array("I", [_get_flags(tag, cost_sets) for tag in cost_tags])
    unspaced = array("I", [*(ord(each) for each in text_words.UNSPACED if each != "-"), 0])
    lower = array("H", map(_lower_word_character, map(chr, range(_CHARACTERS))))
    settings = _Settings(
        ctypes.cast(addresses, ctypes.c_void_p),
        _join(_TAGS),
        _join(scan.ROOT_IDS),
        _join(scan.BOILERPLATE_ROLES),
        _join(scan.PLACEHOLDER_CLASSES),
        _join(scan.OPENED_PARTS),
        "".join(scan.LINK_MARKS).encode(),
        tag_flags.buffer_info()[0],
        _join(cost_tags),
        cost_flags.buffer_info()[0],
        scan.MAX_ROOT_CHARS,
        scan.MIN_MESSAGE_WORDS,
        scan.MAX_MESSAGE_CHARS,
        scan.MAX_DATA_CHARS,
        page_cost.TREE_STEPS,
        page_cost.FORMATTED_NODES,
        page_cost.MANY_ATTRIBUTES_CHARS,
        unspaced.buffer_info()[0],
        lower.buffer_info()[0],
    )
    _declare(library)
    if not library.load(ctypes.byref(settings)):
        raise _Unusable("the compiled version has no room for all tags")
    return library, (settings, addresses, functions, tag_flags, cost_flags, unspaced, lower)


def _declare(library: ctypes.CDLL) -> None:
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong
    library.scan_tree.argtypes = (address, address, size, address, size, ctypes.c_int, address)
    library.free_scan.argtypes = (address,)
    library.free_scan.restype = None
    library.join_texts.argtypes = (address, ctypes.c_int, address)
    library.digest_words.argtypes = (address, ctypes.c_int, address, size, address)
    library.join_content.argtypes = (address, address, size)
    library.find_data_paths.argtypes = (address,)
    library.may_have_scripts.argtypes = (ctypes.c_char_p, size)
    library.has_empty_custom_element.argtypes = (ctypes.c_char_p, size)
    library.count_affordable_bytes.argtypes = (ctypes.c_char_p, size, number)
    library.count_affordable_bytes.restype = number
    library.hash_words.argtypes = (ctypes.c_char_p, size, address, address, size)
    library.hash_words.restype = size


def _get_flags(tag: str, sets: Collection[Collection[str]]) -> int:
    return sum(1 << bit for bit, tags in enumerate(sets) if tag in tags)


def _get_marks(tag: str) -> int:
    start, end = scan.MARKS.get(tag, ("\0", "\0"))
    return ord(start) << 16 | ord(end) << 24


def _lower_word_character(character: str) -> int:
    """Return the number of the lowercase of a character in words; _UNKNOWN if there is none, 0 for other characters."""
    if not _WORD_CHARACTER.match(character):
        return 0
    lowercase = character.translate(_WITHOUT_LOWERCASE).lower()
    return ord(lowercase) if lowercase and ord(lowercase) < _CHARACTERS else _UNKNOWN


def _join(names: Collection[str]) -> bytes:
    return "".join(f"{name}\0" for name in names).encode()


def _check(library: ctypes.CDLL) -> None:
    """Compare both versions on a small page."""
    tree = LexborHTMLParser(_SAMPLE)
    if tree.root is None or _scan(library, tree.root.mem_id, (), None).build() != scan.scan_tree(tree):
        raise _Unusable("the compiled version reads a sample page differently")


def _scan(
    library: ctypes.CDLL,
    root: int,
    ignored: Collection[int],
    watched: Collection[int] | None,
    *,
    with_noscript: bool = False,
) -> "CompiledScan":
    found = CompiledScan(library)
    # No node has the number 0. It makes the address of an empty list differ from that of no list, which is 0.
    nodes = [array("Q", () if numbers is None else (0, *sorted(numbers))) for numbers in (ignored, watched)]
    if not library.scan_tree(root, *chain(*((each.buffer_info()) for each in nodes)), with_noscript, found.address):
        raise MemoryError
    return found


class WordLimits(NamedTuple):
    """How much of a text counts toward its fingerprint and its sample, and the hashes that stand for line ends etc."""

    max_chars: int
    max_words: int
    sample_words: int
    line_end: int
    wildcard: int


class WordDigest(NamedTuple):
    """The number of words of a text, their fingerprint, and their sample; all 0 and empty without words."""

    words: int
    fingerprint: int
    sample: tuple[int, ...]


class _WordDigest(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_ulonglong) for name in (*WordLimits._fields, "words", "fingerprint", "sample_size")),
        ("sample", ctypes.c_ulonglong * 8),
    )


class JoinedLines(Struct, frozen=True):
    """The lines of a page as texts, in UTF-8.

    whole: all lines that are not empty.  main: without boilerplate, unless too little would remain.  restored: the main
    text with the line breaks and the indentation of preformatted text.  shape: the number of spaces of each line of the
    whole text, as unsigned integers.  chars: the length of the whole text.  source: what they were made of.
    """

    whole: bytes
    main: bytes
    restored: bytes
    shape: bytes
    chars: int
    source: "CompiledScan | None" = None


class CompiledScan:
    """What the library found in a page, in its own memory. Objects are only made of what is asked for."""

    __slots__ = ("_found", "_records", "address", "library")

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library, self._found = library, _Scan()
        self._records: list[Record] | None = None
        self.address = ctypes.addressof(self._found)

    def __del__(self) -> None:
        self.library.free_scan(self.address)

    @property
    def signs(self) -> int:
        return self._found[3 * _BUFFERS]

    @property
    def base(self) -> str | None:
        found = _split(self._get(_BASE))
        return found[0] if found else None

    @property
    def language(self) -> str:
        return _split(self._get(_LANGUAGE))[0]

    @property
    def records(self) -> list[Record]:
        """Return the records; inline scripts without their texts, except data in JSON."""
        if self._records is None:
            self._records = list(self._build_records(needs_all=False))
        return self._records

    def _build_records(self, *, needs_all: bool) -> Iterator[Record]:
        values, scripts = iter(_split(self._get(_RECORD_VALUES))), iter(self._get(_SCRIPTS).split(b"\0"))
        for kind in self._get(_RECORD_KINDS):
            of_record = tuple(islice(values, _VALUE_COUNTS[kind]))
            if kind == RecordKind.SCRIPT:
                data = next(scripts)
                is_needed = needs_all or "json" in of_record[0].lower()
                of_record = (of_record[0], data.decode("utf-8", "replace") if is_needed else "")
            yield _new_record((kind, of_record))

    @property
    def anchors(self) -> list[str]:
        return _split(self._get(_ANCHORS))

    @property
    def followed(self) -> list[int]:
        return list(self._get(_FOLLOWED))

    @property
    def texts(self) -> list[str]:
        return _split(self._get(_TEXTS))

    def count_chars(self) -> int:
        """Return the number of characters of all lines that are not whitespace."""
        return self._found[3 * _BUFFERS + 2]

    def describe(self, tag_numbers: bytes) -> tuple[Any, ...]:
        """Return the numbers of boxes and lines, the addresses of what is known of them, and the sizes of the texts.

        In the order of compiled_scores.py. tag_numbers: the numbers of the tags there, by the numbers here.
        """
        found = self._found[:]
        tags = self._get(_BOX_TAGS_AT).translate(tag_numbers)
        numbers = (_BOX_PARENTS, _BOX_ENDS, _LINE_BOXES, _LINE_CHARS, _LINE_LINK_CHARS, _BOX_FLAGS)
        texts = (_BOX_CLASSES, _BOX_HINTS, _TEXTS)
        addresses = [found[3 * each] for each in numbers], [found[3 * each] for each in texts]
        sizes = [found[3 * each + 1] - 1 for each in texts]  # without the last NUL
        return (len(tags), found[3 * _LINE_BOXES + 1] // 4, *addresses[0], tags, *addresses[1], *sizes)

    def join_texts(self, min_main_percent: int) -> "JoinedLines":
        """Join the lines to the whole and the main text.

        min_main_percent: of the characters; with less, the main text is all.
        """
        facts = (ctypes.c_int * 3)()
        if not self.library.join_texts(self.address, min_main_percent, facts):
            raise MemoryError
        chars, is_whole, is_restored = facts
        whole = self._get(_WHOLE)
        main = whole if is_whole else self._get(_MAIN)
        return JoinedLines(whole, main, self._get(_RESTORED) if is_restored else main, self._get(_SHAPE), chars, self)

    def digest_words(self, limits: WordLimits, replaced: Collection[int], *, is_whole: bool) -> WordDigest | None:
        """Return the fingerprint and the sample of the joined main text; None if only Python can compute them.

        replaced: the hashes of words that a wildcard replaces in the sample.  is_whole: whether the main text is all.
        """
        found, words = _WordDigest(*limits), array("Q", replaced)
        done = self.library.digest_words(self.address, is_whole, *words.buffer_info(), ctypes.byref(found))
        if not done:
            raise MemoryError
        return (
            WordDigest(found.words, found.fingerprint, tuple(found.sample[: found.sample_size])) if done > 0 else None
        )

    def join_content(self, lines: "array[int]") -> str | None:
        """Join chosen lines to the content text; return None if only Python can."""
        done = self.library.join_content(self.address, *lines.buffer_info())
        if not done:
            raise MemoryError
        return self._get(_READING).decode("utf-8", "replace") if done > 0 else None

    def find_data_paths(self) -> list[list[str]]:
        """Return the quoted texts of each inline script that may be paths."""
        if not self.library.find_data_paths(self.address):
            raise MemoryError
        paths: list[list[str]] = [[]]
        for path in _split(self._get(_PATHS)):
            if path:
                paths[-1].append(path)
            else:
                paths.append([])
        return paths

    def _get(self, buffer: int) -> bytes:
        return ctypes.string_at(self._found[3 * buffer], self._found[3 * buffer + 1])

    def build(self) -> PageScan:
        """Make a PageScan of everything."""
        get = self._get
        pointers = _read_integers(get(_POINTERS))
        return PageScan(
            box_tags=[_BOX_TAGS[number] for number in get(_BOX_TAGS_AT)],
            box_parents=_read_integers(get(_BOX_PARENTS)),
            box_ends=_read_integers(get(_BOX_ENDS)),
            box_flags=list(get(_BOX_FLAGS)),
            box_classes=_split(get(_BOX_CLASSES)),
            box_hints=_split(get(_BOX_HINTS)),
            line_boxes=_read_integers(get(_LINE_BOXES)),
            line_chars=_read_integers(get(_LINE_CHARS)),
            line_link_chars=_read_integers(get(_LINE_LINK_CHARS)),
            texts=self.texts,
            marked=_split(get(_MARKED)),
            pointers=list(map(_new_pointer, zip(*[iter(pointers)] * 4, strict=True))),
            anchors=self.anchors,
            followed=self.followed,
            records=list(self._build_records(needs_all=True)),
            base=self.base,
            language=self.language,
            signs=self.signs,
        )


def list_box_tags() -> tuple[str, ...]:
    """Return the tags by their numbers in a compiled scan."""
    return _BOX_TAGS


def _read_integers(data: bytes) -> list[int]:
    return memoryview(data).cast("i").tolist()


def _split(data: bytes) -> list[str]:
    """Split a buffer into its strings, each of which ends with a NUL."""
    strings = data.decode("utf-8", "replace").split("\0")
    strings.pop()
    return strings
