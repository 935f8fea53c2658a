r"""Regular expressions that always run in linear time (RE2).

Python's engine backtracks: a URL of forty characters can keep `(a+)+$` busy forever. RE2 has no look-around and no
back-references. Users write Python's syntax; it is translated where RE2 differs: \Z, \uXXXX, and \d, \w and \s, which
match all scripts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2

MEMORY_BYTES = 64 * 1024 * 1024  # for an expression that finds many texts; RE2 discards cached states beyond that
SINGLE_MEMORY_BYTES = 8 * 1024 * 1024  # for a user's expression

_WORD, _DIGIT, _SPACE = r"\pL\pN_", r"\p{Nd}", r"\s\v\x1c-\x1f\x{85}\pZ"
_TRANSLATED = {"w": f"[{_WORD}]", "W": f"[^{_WORD}]", "s": f"[{_SPACE}]", "S": f"[^{_SPACE}]"}
_TRANSLATED |= {"d": _DIGIT, "D": r"\P{Nd}", "Z": r"\z", "z": r"\Z"}  # \z is invalid in Python, and \Z in RE2
_IN_CLASS = {"w": _WORD, "d": _DIGIT, "D": r"\P{Nd}", "s": _SPACE, "z": r"\Z", "[": r"\["}  # RE2 has nested classes
_ESCAPE = r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))"
_ESCAPE_OR_CLASS = re.compile(rf"(?s){_ESCAPE}|\[(\^?)(\]?)((?:\\.|[^\]\\])*)")  # a class may start with a bracket
_ESCAPE_OR_BRACKET = re.compile(rf"(?s){_ESCAPE}|\[")


@dataclass(frozen=True, slots=True)
class Expression:
    """A user's regular expression in Python's syntax. Raises ValueError with a message for the user if it is invalid.

    problem: why RE2 does not support it, a sentence, or "". Such an expression matches nothing. Stored expressions can
    have a problem; the domain is not crawled until the user replaces them.
    """

    text: str
    problem: str = field(init=False, compare=False)
    _compiled: "re2._Regexp | None" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compiled, problem = _compile(self.text)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "_compiled", compiled)

    def __reduce__(self) -> tuple[type["Expression"], tuple[str]]:
        return Expression, (self.text,)

    def search(self, text: str) -> bool:
        """Return whether the expression matches anywhere in the text."""
        return self._compiled is not None and self._compiled.search(_to_valid_utf8(text)) is not None

    @property
    def matches_empty(self) -> bool:
        """Return whether the expression matches the empty text."""
        return self._compiled is not None and self._compiled.fullmatch("") is not None

    def remove_from(self, text: str) -> str:
        """Return the text without all matches."""
        return text if self._compiled is None else str(self._compiled.sub("", _to_valid_utf8(text)))

    def find_all(self, text: str) -> Iterator[str]:
        """Yield all matches in the text, in order."""
        if self._compiled is not None:
            yield from (match[0] for match in self._compiled.finditer(_to_valid_utf8(text)))


def compile_any_of(texts: Iterable[str]) -> "re2._Regexp":
    """Return an expression that finds any of many texts."""
    import re2  # noqa: PLC0415  see _compile

    # Sorted, so that texts with a common prefix become one branch.
    any_of_them = re2.compile("|".join(map(re2.escape, sorted(texts))), _build_options(MEMORY_BYTES))
    re2.purge()  # otherwise re2 caches the last 128 expressions, even large ones
    return any_of_them


def _compile(text: str) -> "tuple[re2._Regexp | None, str]":
    """Compile an expression, or return why RE2 does not support it. Raise ValueError if it is invalid in Python too."""
    import re2  # noqa: PLC0415  2 MB, and few users write expressions

    try:
        translated = _ESCAPE_OR_CLASS.sub(_translate, _to_valid_utf8(text))
        return re2.compile(translated, _build_options(SINGLE_MEMORY_BYTES)), ""
    except re2.error as error:
        reason = error.args[0] if error.args else error
        message = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return None, (
        f"{text!r} is not supported, because it could run forever or use too much memory ({message}); RE2 expressions "
        "have no look-around, no back-references and at most 1,000 repetitions: rewrite it without them"
    )


def _build_options(memory_bytes: int) -> "re2.Options":
    import re2  # noqa: PLC0415  see _compile

    options = re2.Options()
    options.max_mem, options.log_errors = memory_bytes, False
    return options


def _to_valid_utf8(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _translate(match: re.Match[str]) -> str:
    """Translate an escape or a character class from Python's syntax to RE2's."""
    if match[0].startswith("\\"):
        return _translate_escape(match, _TRANSLATED)
    inside = _ESCAPE_OR_BRACKET.sub(lambda within: _translate_escape(within, _IN_CLASS), match[6])
    return "[" + match[4] + match[5].replace("]", r"\]") + inside


def _translate_escape(match: re.Match[str], letters: Mapping[str, str]) -> str:
    code = match[1] or match[2]
    return f"\\x{{{code}}}" if code else letters.get(match[3] or match[0], match[0])
