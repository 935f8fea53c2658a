r"""Regular expressions that take a time in proportion to the text, whatever they and the text say (RE2).

Python's own engine tries again and again: forty characters of a stranger's URL keep `(a+)+$` busy for ever. RE2 cannot
look ahead or behind, nor back at a group. What users write in Python's spelling is respelt where RE2 spells it
otherwise: \Z, \uXXXX, and \d, \w and \s, which mean all scripts here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2

MEMORY_BYTES = 64 * 1024 * 1024  # of one search for many texts; what it works out beyond that it works out again
SINGLE_MEMORY_BYTES = 8 * 1024 * 1024

_WORD, _DIGIT, _SPACE = r"\pL\pN_", r"\p{Nd}", r"\s\v\x1c-\x1f\x{85}\pZ"
_TRANSLATED = {
    "w": f"[{_WORD}]",
    "W": f"[^{_WORD}]",
    "d": _DIGIT,
    "D": r"\P{Nd}",
    "s": f"[{_SPACE}]",
    "S": f"[^{_SPACE}]",
}
_TRANSLATED |= {"Z": r"\z", "z": r"\Z"}  # the second Python did not know, and RE2 does not
_IN_CLASS = {"w": _WORD, "d": _DIGIT, "D": r"\P{Nd}", "s": _SPACE, "z": r"\Z", "[": r"\["}  # RE2 has classes in classes
_ESCAPE = r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))"
_ESCAPE_OR_CLASS = re.compile(rf"(?s){_ESCAPE}|\[(\^?)(\]?)((?:\\.|[^\]\\])*)")  # a bracket may come first in a class
_ESCAPE_OR_BRACKET = re.compile(rf"(?s){_ESCAPE}|\[")


@dataclass(frozen=True, slots=True)
class Expression:
    """A user's regular expression, in Python's spelling. ValueError, a sentence for a person, if it is none.

    refusal: why it is not used, a sentence; then it finds nothing. What was stored before is read so, and its domain
    is not crawled until its user has put something else in its place.
    """

    text: str
    refusal: str = field(init=False, compare=False)
    _compiled: "re2._Regexp | None" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compiled, refusal = _compile(self.text)
        object.__setattr__(self, "refusal", refusal)
        object.__setattr__(self, "_compiled", compiled)

    def __reduce__(self) -> tuple[type["Expression"], tuple[str]]:
        return Expression, (self.text,)

    def search(self, text: str) -> bool:
        """Whether it is found anywhere in the text."""
        return self._compiled is not None and self._compiled.search(_to_valid_utf8(text)) is not None

    @property
    def matches_empty(self) -> bool:
        """Whether it finds the empty text, too."""
        return self._compiled is not None and self._compiled.fullmatch("") is not None

    def remove_from(self, text: str) -> str:
        """The text without what it finds."""
        return text if self._compiled is None else str(self._compiled.sub("", _to_valid_utf8(text)))

    def find_all(self, text: str) -> Iterator[str]:
        """What it finds in the text, in order."""
        if self._compiled is not None:
            yield from (match[0] for match in self._compiled.finditer(_to_valid_utf8(text)))


def compile_any_of(texts: Iterable[str]) -> "re2._Regexp":
    """An expression that finds any of many texts."""
    import re2  # noqa: PLC0415  as below

    # In order those that begin alike stand together, and are one branch.
    any_of_them = re2.compile("|".join(map(re2.escape, sorted(texts))), _build_options(MEMORY_BYTES))
    re2.purge()  # it would remember the last 128, however large they are
    return any_of_them


def _compile(text: str) -> "tuple[re2._Regexp | None, str]":
    """The compiled expression, or why it is refused: Python can read it, and RE2 cannot follow it. ValueError."""
    import re2  # noqa: PLC0415  2 MB, and few users write expressions

    try:
        return re2.compile(
            _ESCAPE_OR_CLASS.sub(_translate, _to_valid_utf8(text)), _build_options(SINGLE_MEMORY_BYTES)
        ), ""
    except re2.error as error:
        reason = error.args[0] if error.args else error
        message = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return None, (
        f"{text!r} could take for ever on some texts, or more memory than there is ({message}): expressions are RE2's, "
        "without looking ahead or behind, back-references and more than 1,000 repetitions; write it without them"
    )


def _build_options(memory_bytes: int) -> "re2.Options":
    import re2  # noqa: PLC0415  as above

    options = re2.Options()
    options.max_mem, options.log_errors = memory_bytes, False
    return options


def _to_valid_utf8(text: str) -> str:
    """A text as it can be spelt in UTF-8: halves of characters are not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _translate(match: re.Match[str]) -> str:
    """An escape or a class of Python's spelling in RE2's."""
    if match[0].startswith("\\"):
        return _translate_escape(match, _TRANSLATED)
    inside = _ESCAPE_OR_BRACKET.sub(lambda within: _translate_escape(within, _IN_CLASS), match[6])
    return "[" + match[4] + match[5].replace("]", r"\]") + inside


def _translate_escape(match: re.Match[str], letters: Mapping[str, str]) -> str:
    code = match[1] or match[2]
    return f"\\x{{{code}}}" if code else letters.get(match[3] or match[0], match[0])
