"""The compiled version of `scores.score_page`; see compiled_scores.c.

It is in the same library as the compiled scan. Without that library, `score_page` computes the same with numpy.
"""

import ctypes
from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from importlib import import_module
from struct import pack
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from crawler.core.page import scan
from crawler.core.page.compiled_scan import CompiledScan, list_box_tags, load_library
from crawler.core.page.html import parse_html
from crawler.core.page.main_content import context, features, hints, page_type, scores, weights
from crawler.core.page.main_content.features import Floats
from crawler.core.page.main_content.scores import LineScores
from crawler.core.page.scan import PageScan, Record

_CHARACTERS = 0x2200  # the first characters, which the library knows
# Differs by process, as Python's hashes of texts do: no page can be made whose texts have many equal places in a table.
# It is also the seed of hashes, since texts with equal XXH3 hashes can be made if the seed is known.
_SECRET = hash("places in a table") & (1 << 64) - 1 | 1
_WITHOUT_LOWERCASE = {0x130: 0, 0x3A3: 0}  # one has two characters, the other depends on the letters around it
_TAGS = ("", *sorted(scan.BLOCK_TAGS))
_TAG_NUMBERS = {tag: number for number, tag in enumerate(_TAGS)}
# The same for the numbers of tags in a compiled scan, in which the boxes have only some of the tags.
_TAGS_OF_SCAN = bytes(_TAG_NUMBERS.get(tag, 0) for tag in list_box_tags()).ljust(256, b"\0")
_PRODUCT = scores.PAGE_TYPES.index(page_type.PageType.PRODUCT)
_MAX_COUNT = 1 << 28  # of boxes or lines, so that the library's integers do not overflow
_UNNAMED_TAGS = frozenset({"body", "html"})
_WORD, _LETTER, _DIGIT, _STRIPPED, _END, _COLON, _CURRENCY, _SIGN_START = (1 << bit for bit in range(8))
# In the order of `Settings` and `Page` in compiled_scores.c.
_LISTS = (
    *("furniture_lines", "furniture_words", "notice_words", "copyright_signs", "months", "time_units", "currencies"),
    *("heading_starts", "part_words", "parts_of_words"),
)
_POINTERS = (
    *("lower", "flags", "sentence_ends", *_LISTS, "word_bits", "part_bits", "tag_bits", "flag_bits", "tag_codes"),
    *("heading_levels", "has_name", "offsets", "context_offsets", "weights", "bit_weights", "context_weights"),
    *("product_bit_weights", "type_weights"),
)
_NUMBERS: dict[str, float] = {
    "intercept": weights.INTERCEPT,
    "large_share": features.LARGE_SHARE,
    "min_part_share": context.MIN_PART_SHARE,
    "min_core_share": context.MIN_CORE_SHARE,
    "min_wider": context.MIN_WIDER,
}
_COUNTS: dict[str, int] = {
    "bits": hints.BIT_COUNT,
    "signs": len(page_type.SIGNS),
    "types": len(scores.PAGE_TYPES),
    "max_short_chars": hints.MAX_SHORT_CHARS,
    "max_notice_chars": hints.MAX_NOTICE_CHARS,
    "max_date_chars": hints.MAX_DATE_CHARS,
    "max_name_chars": hints.MAX_NAME_CHARS,
    "min_compound_chars": hints.MIN_COMPOUND_CHARS,
    "min_title_chars": features.MIN_TITLE_CHARS,
    "min_region_lines": context.MIN_REGION_LINES,
    "near_lines": context.NEAR_LINES,
    "wide_lines": context.WIDE_LINES,
    "min_paragraph_size": context.MIN_PARAGRAPH_SIZE,
    "max_weight_chars": context.MAX_WEIGHT_CHARS,
    "many_lines": page_type.MANY_LINES,
}
_SAMPLE = """<html><title>The keeper of the lamp</title><body class=page><nav><a href=/>Home</a><a href=x>News</a></nav>
<main id=mainContent class='post-body relatedPosts'><h1>The keeper of the lamp</h1><p>3 May 2021<p>$ 19.99<p>12 min read
<p>The keeper climbs the stairs each evening, lights the lamp, and writes the hour in a book. It is a long way.</p>
<h2>Stores of the year</h2><ul><li><a href=1>Oil for the lamps</a><br>a: 1<li><a href=2>Flour and salt</a><br>2 b<li>
<a href=3>Soap \xe9\u0416</a><br>x</ul></main><div class=sidebar><h3>Related posts</h3><p>Read more<p>Read more</div>
<p>Would you like our newsletter each week, with news of all the lighthouses at this coast and of the boats that land?
<footer><p>\xa9 2024 Lamps<p>!</footer>"""

_Bytes = ctypes.c_char_p
_Address = ctypes.c_void_p


class _Settings(ctypes.Structure):
    _fields_ = (
        ("hash", _Address),
        ("secret", ctypes.c_ulonglong),
        *((name, _Address) for name in _POINTERS),
        ("furniture_bits", ctypes.c_ulonglong),
        *((name, ctypes.c_double) for name in _NUMBERS),
        *((name, ctypes.c_int) for name in _COUNTS),
    )


class _Page(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_longlong) for name in ("boxes", "lines")),
        *(
            (name, _Bytes)
            for name in (
                "parents",
                "box_ends",
                "line_boxes",
                "chars",
                "link_chars",
                "flags",
                "tags",
                "classes",
                "hints",
                "texts",
                "title",
            )
        ),
        *((name, ctypes.c_longlong) for name in ("class_bytes", "hint_bytes", "text_bytes", "title_bytes")),
        ("title_chars", ctypes.c_longlong),
        ("questions", _Address),
    )


class _Begun(NamedTuple):
    """A page that the library has read. asked: the number of questions; -1 if only numpy can score the page."""

    asked: int
    work: int
    questions: "array[int]"
    kept: tuple[Any, ...]


class _Loaded(Struct):
    """The library that the settings were passed to. is_usable: whether it reads a sample page as numpy does."""

    library: ctypes.CDLL | None = None
    is_usable: bool = False
    kept: list[object] = field(default_factory=list)  # what the library refers to, also after it is loaded again


_loaded = _Loaded()
_loading = Lock()  # the library's settings must not change while another thread uses them


def score_page(page: PageScan, title: str) -> LineScores:
    """Do the same as `scores.score_page`, in a fraction of the time where there is a library."""
    found = score_compiled(page, title)
    return scores.score_page(page, title) if found is None else found


def score_compiled(page: PageScan, title: str) -> LineScores | None:
    """Score the lines of a page with the library; return None if there is none or only numpy can score this page."""
    library = load_scoring_library()
    return None if library is None else _score_page(library, page, title)


def load_scoring_library() -> ctypes.CDLL | None:
    """Load the library, unless it is loaded or cannot be used to score lines."""
    library = load_library()
    if library is not None and library is not _loaded.library:
        with _loading:
            if library is not _loaded.library:
                _load(library)
    return library if _loaded.is_usable else None


def _load(library: ctypes.CDLL) -> None:
    """Pass the settings to the library, and compare both versions on a small page."""
    library.count_work_bytes.argtypes = (ctypes.c_int, ctypes.c_int)
    library.count_work_bytes.restype = ctypes.c_size_t
    library.read_page.argtypes = (_Address, _Address)
    library.score_page.argtypes = (_Address, ctypes.c_int, _Address)
    library.score_context.argtypes = (_Address, _Address, ctypes.c_int, _Address)
    library.score_context.restype = None
    library.choose_lines.argtypes = (
        *(_Address, ctypes.c_int, _Bytes, ctypes.c_size_t, ctypes.c_int, _Address),
        *(ctypes.c_int, _Address, _Address, _Address),
    )
    settings, kept = _build_settings()
    _loaded.kept.append((settings, kept))
    _loaded.is_usable = bool(library.load_content(ctypes.byref(settings))) and _is_right(library)
    _loaded.library = library


def _is_right(library: ctypes.CDLL) -> bool:
    tree, title = parse_html(_SAMPLE.encode(), "text/html; charset=utf-8").tree, "The keeper of the lamp"
    page = scan.scan_tree(tree)
    found, wanted = _score_page(library, page, title), scores.score_page(page, title)
    return (
        found is not None
        and found.page_type is wanted.page_type
        and np.allclose(found.likely, wanted.likely, 0, 1e-12)
        and np.allclose(found.score_context(wanted.likely), wanted.score_context(wanted.likely), 0, 1e-12)
    )


def _score_page(library: ctypes.CDLL, page: PageScan, title: str) -> LineScores | None:
    """Return the scores; None if only numpy can compute them."""
    try:
        tags, flags = bytes(map(_TAG_NUMBERS.__getitem__, page.box_tags)), bytes(page.box_flags)
    except (KeyError, ValueError):
        return None
    boxes, lines = len(tags), len(page.texts)
    integers = (page.box_parents, page.box_ends, page.line_boxes, page.line_chars, page.line_link_chars)
    if [len(flags), *map(len, integers)] != [boxes, boxes, boxes, lines, lines, lines]:
        return None
    arrays = [pack(f"{len(each)}i", *each) for each in integers]  # faster than to make arrays
    classes, names, texts = _join(page.box_classes), _join(page.box_hints), _join(page.texts)
    sizes = map(len, (classes, names, texts))
    begun = _begin(library, (boxes, lines, *arrays, flags, tags, classes, names, texts, *sizes), title)
    if begun is None or begun.asked < 0:
        return None
    _answer(begun.questions, begun.asked, page.texts)
    signs, work = _join_signs(page.records), begun.work
    likely = np.empty(lines)
    found = scores.PAGE_TYPES[library.score_page(work, signs, likely.ctypes.data)]
    score = partial(_score_context, library, begun, is_product=found is page_type.PageType.PRODUCT)
    return LineScores(found, likely, np.frombuffer(arrays[3], dtype=np.intc).astype(np.int64), score)


def choose_compiled(
    found: CompiledScan, title: str, shared: bytes, odds: "ctypes.Array[ctypes.c_double]", *, is_known: bool
) -> "tuple[array[int], page_type.PageType, float] | None":
    """Choose the lines of a page as `choose_content` does; return None if only Python can.

    shared: as in SharedLines.  odds: see choice.py.  is_known: whether enough of the domain's pages are known.
    """
    library = load_scoring_library()
    if library is None:
        return None
    page = _begin(library, found.describe(_TAGS_OF_SCAN), title)
    if page is None or page.asked < 0:
        return None
    if page.asked:
        _answer(page.questions, page.asked, found.texts)
    lines = array("i", bytes(4 * len(page.questions) // 2))
    confidence, number = ctypes.c_double(), ctypes.c_int()
    signs = _join_signs(found.records)
    count = library.choose_lines(
        page.work,
        signs,
        *(shared, len(shared) // 8, is_known, odds, _PRODUCT, lines.buffer_info()[0]),
        *(ctypes.byref(confidence), ctypes.byref(number)),
    )
    return lines[:count], scores.PAGE_TYPES[number.value], confidence.value


def _begin(library: ctypes.CDLL, parts: tuple[Any, ...], title: str) -> "_Begun | None":
    """Let the library read a page.

    parts: the first fields of `_Page`, but for the title, and the sizes of the texts.
    """
    boxes, lines = parts[:2]
    if not (0 < boxes < _MAX_COUNT and 0 < lines < _MAX_COUNT):
        return None
    title = title[: features.MAX_TITLE_CHARS]
    encoded = _encode(title)
    questions = array("i", bytes(16 * lines))
    given = _Page(*parts[:-3], encoded, *parts[-3:], len(encoded), len(title), questions.buffer_info()[0])
    memory = np.empty(library.count_work_bytes(boxes, lines) // 8 + 1)
    work = memory.ctypes.data
    return _Begun(library.read_page(ctypes.byref(given), work), work, questions, (memory, given, parts))


def _join_signs(records: Sequence[Record]) -> int:
    return sum([1 << bit for bit, is_found in enumerate(page_type.find_signs(records)) if is_found])


def _score_context(library: ctypes.CDLL, begun: _Begun, likely: Floats, *, is_product: bool) -> Floats:
    given, found = np.ascontiguousarray(likely, dtype=np.float64), np.empty(len(likely))
    library.score_context(begun.work, given.ctypes.data, is_product, found.ctypes.data)
    return found


def _answer(questions: "array[int]", count: int, texts: list[str]) -> None:
    """Classify the lines that the library cannot classify."""
    for at in range(0, 2 * count, 2):
        line, is_heading = divmod(questions[at], 2)
        text = texts[line]
        questions[at + 1] = hints.classify_heading(text) if is_heading else features.classify_text(text)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _join(texts: Collection[str]) -> bytes:
    return _encode("\0".join(texts))


def _build_settings() -> tuple[_Settings, object]:
    lower, flags = _describe_characters()
    lists = _build_lists()
    words = _sort_words(hints.BITS_BY_WORD)
    parts = _sort_words(hints.BITS_BY_PART_OF_WORD)
    arrays: dict[str, NDArray[Any]] = {
        "lower": lower,
        "flags": flags,
        "sentence_ends": np.array([*map(ord, features.SENTENCE_ENDS), 0], dtype=np.uint32),
        **{name: _encode_words(lists[name]) for name in _LISTS},
        "word_bits": _build_bits(map(hints.BITS_BY_WORD.__getitem__, words)),
        "part_bits": _build_bits(map(hints.BITS_BY_PART_OF_WORD.__getitem__, parts)),
        "tag_bits": _build_bits(hints.BITS_BY_TAG.get(tag, 0) for tag in _TAGS),
        "flag_bits": _build_bits(features.FLAG_MASKS),
        "tag_codes": np.array([features.TAG_CODES.get(tag, len(features.TAGS)) for tag in _TAGS], dtype=np.uint8),
        "heading_levels": np.array([features.HEADING_LEVELS.get(tag, 0) for tag in _TAGS], dtype=np.uint8),
        "has_name": np.array([tag not in _UNNAMED_TAGS for tag in _TAGS], dtype=np.uint8),
        "offsets": scores.OFFSETS.ravel().astype(np.intc),
        "context_offsets": scores.CONTEXT_OFFSETS.ravel().astype(np.intc),
        "weights": scores.TABLE_WEIGHTS,
        "bit_weights": np.array(weights.BIT_WEIGHTS),
        "context_weights": scores.CONTEXT_TABLE_WEIGHTS,
        "product_bit_weights": np.array(weights.PRODUCT_BIT_WEIGHTS),
        "type_weights": scores.TYPE_TABLE,
    }
    hash_bytes = ctypes.CDLL(import_module("xxhash._xxhash").__file__).XXH3_64bits_withSeed
    settings = _Settings(
        ctypes.cast(hash_bytes, _Address),
        _SECRET,
        *(arrays[name].ctypes.data for name in _POINTERS),
        hints.FURNITURE_BITS,
        *_NUMBERS.values(),
        *_COUNTS.values(),
    )
    return settings, (arrays, hash_bytes)


def _describe_characters() -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return the lowercase of the first characters, or 0 if the library must not read them, and their flags."""
    text = "".join(map(chr, range(_CHARACTERS)))
    lower, flags = _number(text.translate(_WITHOUT_LOWERCASE).lower()), np.zeros(_CHARACTERS, dtype=np.uint8)
    lower[lower >= _CHARACTERS] = 0
    lower[_number(text[: ord(" ")] + "".join(hints.SPACE.findall(text)))] = 0
    lower[ord(" ")] = ord(" ")
    groups = (
        (_WORD, hints.WORD_CHARACTER.findall(text)),
        (_LETTER, hints.LETTER.findall(text)),
        (_DIGIT, hints.DIGIT.findall(text)),
        (_STRIPPED, hints.PUNCTUATION),
        (_END, hints.LINE_ENDS),
        (_COLON, hints.COLONS),
        (_CURRENCY, hints.CURRENCY_SIGNS),
        (_SIGN_START, [sign[0] for sign in hints.COPYRIGHT_SIGNS.split("|")]),
    )
    for flag, characters in groups:
        numbers = _number("".join(dict.fromkeys(characters)))
        flags[numbers[numbers < _CHARACTERS]] |= flag
    return lower, flags


def _number(text: str) -> NDArray[np.uint16]:
    """Return the numbers of characters; the highest one for all characters of more than 16 bits."""
    numbers = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return np.asarray(np.minimum(numbers, 0xFFFF), dtype=np.uint16)


def _build_lists() -> dict[str, Iterable[str]]:
    units = [each for unit in hints.TIME_UNITS.split("|") for each in {unit.removesuffix("s?"), unit.removesuffix("?")}]
    return {
        "furniture_lines": hints.FURNITURE_LINES,
        "furniture_words": hints.FURNITURE_WORDS,
        "notice_words": hints.NOTICE_WORDS,
        "copyright_signs": hints.COPYRIGHT_SIGNS.split("|"),
        "months": hints.MONTHS.split("|"),
        "time_units": units,
        "currencies": [*hints.CURRENCY_SIGNS, *hints.CURRENCY_NAMES.split("|")],
        "heading_starts": hints.HEADING_STARTS.split("|"),
        "part_words": hints.BITS_BY_WORD,
        "parts_of_words": hints.BITS_BY_PART_OF_WORD,
    }


def _sort_words(words: Iterable[str]) -> list[str]:
    """Sort words by bucket; within one, their order stays."""
    return sorted(words, key=lambda word: ord(word[0]) % 256)


def _encode_words(words: Iterable[str]) -> NDArray[np.uint16]:
    return _number("".join(f"{word}\0" for word in _sort_words(words)) + "\0")


def _build_bits(masks: Iterable[int]) -> NDArray[np.uint64]:
    return np.array(list(masks), dtype=np.uint64)
