"""The compiled version of `scan_tree`, and of two loops over text; see compiled_scan.c.

scripts/compile_reader.py makes the library, where there is a C compiler. Everything here works without it, in Python.
`describe_reader` says which one is used. The library is loaded at the first use.
"""

import ctypes
import sysconfig
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any

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
    RecordKind.SCRIPT: 2,
    RecordKind.BLANK: 1,
}
_BYTE_BUFFERS, _INTEGER_BUFFERS, _STRING_BUFFERS = 4, 6, 8
_BUFFERS = _BYTE_BUFFERS + _INTEGER_BUFFERS + _STRING_BUFFERS
_Scan = ctypes.c_size_t * (3 * _BUFFERS + 2)  # the address, length and size of each buffer; then signs and failure
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
    library, root = load_library(), tree.root
    if library is None or root is None:
        return scan.scan_tree(tree, ignored=ignored, watched=watched, with_noscript=with_noscript)
    return _scan(library, root.mem_id, ignored, watched, with_noscript=with_noscript)


def count_affordable_chars(source: str) -> int:
    """Do the same as `page_cost.count_affordable_chars`."""
    if len(source) <= page_cost.FREE_CHARS and source.count("<") <= page_cost.FREE_TAGS:
        return len(source)
    library = load_library()
    if library is None:
        return page_cost.count_affordable_chars(source)
    data = source.encode("utf-8", "surrogatepass")
    max_tags = (page_cost.READING_BYTES - page_cost.BYTES_PER_CHAR * len(source)) // page_cost.BYTES_PER_TAG
    count: int = library.count_affordable_bytes(data, len(data), max_tags)
    if count < 0:
        return page_cost.count_affordable_chars(source)
    return len(source) if count == len(data) else len(data[:count].decode("utf-8", "surrogatepass"))


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
    )
    _declare(library)
    if not library.load(ctypes.byref(settings)):
        raise _Unusable("the compiled version has no room for all tags")
    return library, (settings, addresses, functions, tag_flags, cost_flags, unspaced)


def _declare(library: ctypes.CDLL) -> None:
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong
    library.scan_tree.argtypes = (address, address, size, address, size, ctypes.c_int, address)
    library.free_scan.argtypes = (address,)
    library.free_scan.restype = None
    library.count_affordable_bytes.argtypes = (ctypes.c_char_p, size, number)
    library.count_affordable_bytes.restype = number
    library.hash_words.argtypes = (ctypes.c_char_p, size, address, address, size)
    library.hash_words.restype = size


def _get_flags(tag: str, sets: Collection[Collection[str]]) -> int:
    return sum(1 << bit for bit, tags in enumerate(sets) if tag in tags)


def _get_marks(tag: str) -> int:
    start, end = scan.MARKS.get(tag, ("\0", "\0"))
    return ord(start) << 16 | ord(end) << 24


def _join(names: Collection[str]) -> bytes:
    return "".join(f"{name}\0" for name in names).encode()


def _check(library: ctypes.CDLL) -> None:
    """Compare both versions on a small page."""
    tree = LexborHTMLParser(_SAMPLE)
    if tree.root is None or _scan(library, tree.root.mem_id, (), None) != scan.scan_tree(tree):
        raise _Unusable("the compiled version reads a sample page differently")


def _scan(
    library: ctypes.CDLL,
    root: int,
    ignored: Collection[int],
    watched: Collection[int] | None,
    *,
    with_noscript: bool = False,
) -> PageScan:
    found = _Scan()
    # No node has the number 0. It makes the address of an empty list differ from that of no list, which is 0.
    nodes = [array("Q", () if numbers is None else (0, *sorted(numbers))) for numbers in (ignored, watched)]
    try:
        if not library.scan_tree(root, *chain(*((each.buffer_info()) for each in nodes)), with_noscript, found):
            raise MemoryError
        numbers = found[:]
        buffers = [ctypes.string_at(numbers[at], numbers[at + 1]) for at in range(0, 3 * _BUFFERS, 3)]
    finally:
        library.free_scan(found)
    return _build_scan(buffers, numbers[3 * _BUFFERS])


def _build_scan(buffers: list[bytes], signs: int) -> PageScan:
    bytes_end = _BYTE_BUFFERS + _INTEGER_BUFFERS
    box_tags, box_flags, followed, kinds = buffers[:_BYTE_BUFFERS]
    parents, ends, line_boxes, chars, link_chars, pointers = map(_read_integers, buffers[_BYTE_BUFFERS:bytes_end])
    classes, hints, texts, marked, anchors, values, base, language = map(_split, buffers[bytes_end:])
    return PageScan(
        box_tags=[_BOX_TAGS[number] for number in box_tags],
        box_parents=parents,
        box_ends=ends,
        box_flags=list(box_flags),
        box_classes=classes,
        box_hints=hints,
        line_boxes=line_boxes,
        line_chars=chars,
        line_link_chars=link_chars,
        texts=texts,
        marked=marked,
        pointers=list(map(_new_pointer, zip(*[iter(pointers)] * 4, strict=True))),
        anchors=anchors,
        followed=list(followed),
        records=list(_build_records(kinds, values)),
        base=base[0] if base else None,
        language=language[0],
        signs=signs,
    )


def _read_integers(data: bytes) -> list[int]:
    return memoryview(data).cast("i").tolist()


def _split(data: bytes) -> list[str]:
    """Split a buffer into its strings, each of which ends with a NUL."""
    strings = data.decode("utf-8", "replace").split("\0")
    strings.pop()
    return strings


def _build_records(kinds: bytes, values: list[str]) -> Iterator[Record]:
    rest = iter(values)
    for kind in kinds:
        yield _new_record((kind, tuple(islice(rest, _VALUE_COUNTS[kind]))))
