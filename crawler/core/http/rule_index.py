"""Which rule of a robots.txt decides about a path, in bounded time whatever the file and the path say.

RFC 9309 lets the longest pattern that fits decide. Patterns that fit all that begins so are found by bisection. Of
those with an asterisk further on only those are tried that may fit: each is filed under the rarest run of characters
that it asks for. What is tried is counted. Where a file asks for more than MOST_STEPS, the path counts as refused: an
owner who hides a rule among thousands that nearly fit is rather not asked than misunderstood.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from crawler.core.http.wildcards import FiledWildcards, Rank, Wildcard, wildcard_of

MOST_STEPS = 48  # searches for a piece of a pattern, about 0.1 us each: 5,000 links take less than 50 ms
LONG_SEARCH = 4000  # characters of a path times those of a piece; beyond that a search may take many steps
WORTH_FILING = 4  # fewer wildcards are tried one by one

# Both sides of a comparison are spelt alike: printable ASCII as it is, everything else as upper-case escapes of UTF-8.
# A slash, a percent sign and an asterisk mean something where they are not escaped, and stay what they are.
_KEPT = "/%*"
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_AS_IT_IS = re.compile("[!-$&-~]*")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_DECODED = {
    tens: [
        (tens + ones, char)
        for ones in "0123456789ABCDEF"
        if (char := chr(int(tens[1] + ones, 16))) in _ASCII and char not in _KEPT
    ]
    for tens in ("%2", "%3", "%4", "%5", "%6", "%7")
}
_COUNTED_AS_ESCAPE = re.compile(r"[^\w.~/=*%-]", re.ASCII)  # in the length of a pattern

NO_RULE: Rank = (-1, True)


class RuleIndex:
    """The rules of one group, each as whether it allows and its pattern as it is written.

    dollars: a final "$" may also be meant as it stands, which only a path that has one can show.
    """

    def __init__(self, rules: Iterable[tuple[bool, str]], *, dollars: bool = False) -> None:
        exact: dict[str, Rank] = {}
        prefixes: dict[str, Rank] = {}
        wildcards: list[Wildcard] = []
        self._rules, self._dollars = tuple(dict.fromkeys(rules)), dollars
        for allows, text, ends in _each_meaning(self._rules, dollars=dollars):
            rank = (_length(text) + ends, allows)
            if "*" in (text if ends else text.rstrip("*")):
                wildcards.append(wildcard_of(text, rank, ends=ends))
                continue
            plain, whole = exact if ends else prefixes, text.rstrip("*").replace("%2A", "*")
            plain[whole] = max(plain.get(whole, NO_RULE), rank)
        self._exact, self._prefixes = exact, _Prefixes(prefixes)
        self._wildcards = sorted(wildcards, reverse=True)
        self._overruled = frozenset(not rule.rank[1] for rule in wildcards)  # verdicts that a wildcard may overrule
        self._filed = FiledWildcards(self._wildcards) if len(wildcards) >= WORTH_FILING else None
        # Of few all can be tried, whatever the path.
        self._are_few = self._filed is None or sum(1 + len(rule.pieces) for rule in wildcards) <= MOST_STEPS
        self._with_dollars: RuleIndex | None = None

    def allows(self, path: str) -> bool:
        """Whether the longest pattern that fits allows the path; Allow wins a draw, and where none fits.

        path: with its query, as `path_and_query` of a normalised URL gives it.
        """
        if "%" in path:
            path = _unified(path).replace("%2A", "*")
        if "$" in path and not self._dollars:
            if self._with_dollars is None:
                self._with_dollars = RuleIndex(self._rules, dollars=True)
            return self._with_dollars.allows(path)
        rank = self._prefixes.rank_of(path)
        if path in self._exact:
            rank = max(rank, self._exact[path])
        return self._overrule(path, rank) if rank[1] in self._overruled else rank[1]

    def _overrule(self, path: str, rank: Rank) -> bool:
        """What is decided where a rule of this rank fits, and a wildcard may say otherwise."""
        chars = len(path)
        left = MOST_STEPS + (chars >> 4 if self._are_few else 0)
        of_one = 1 + (chars >> 9)
        found = self._filed.numbers_for(path, left) if self._filed is not None else None
        if found is None and not self._are_few:
            return False
        for rule in self._wildcards if found is None else map(self._wildcards.__getitem__, found):
            rule_rank, start, pieces, end, least, longest = rule
            if rule_rank <= rank:
                break
            left -= 1
            if least > chars or not path.startswith(start) or not path.endswith(end):
                continue
            if longest * chars > LONG_SEARCH:
                left -= _surcharge(pieces, path)
            at, stop = len(start), chars - len(end)
            for piece in pieces:
                left -= of_one
                if left < 0:
                    return False
                at = path.find(piece, at, stop)
                if at < 0:
                    break
                at += len(piece)
            else:
                return rule_rank[1]
        return rank[1]


class _Prefixes:
    """Patterns that fit all that begins so. The ranks are those of the best one that fits."""

    def __init__(self, prefixes: dict[str, Rank]) -> None:
        self._texts = sorted(prefixes)
        self._ranks: list[Rank] = []
        # The next shorter prefix of each, and one further up, so that a chain of thousands is climbed in few steps
        # (Myers, "An applicative random-access stack", 1983).
        self._up: list[int] = []
        self._jump: list[int] = []
        depths: list[int] = []
        chain: list[int] = []
        for n, text in enumerate(self._texts):
            while chain and not text.startswith(self._texts[chain[-1]]):
                chain.pop()
            up = jump = chain[-1] if chain else -1
            if up >= 0 and (over := self._jump[up]) >= 0 and (top := self._jump[over]) >= 0:
                jump = top if depths[up] - depths[over] == depths[over] - depths[top] else up
            self._up.append(up)
            self._jump.append(jump)
            self._ranks.append(max(prefixes[text], self._ranks[up] if up >= 0 else NO_RULE))
            depths.append(depths[up] + 1 if up >= 0 else 0)
            chain.append(n)

    def rank_of(self, path: str) -> Rank:
        """The best rank of a prefix of the path, or that of no rule."""
        texts = self._texts
        n = bisect_right(texts, path) - 1
        while n >= 0 and not path.startswith(texts[n]):
            over = self._jump[n]
            n = self._up[n] if over < 0 or path.startswith(texts[over]) else over
        return self._ranks[n] if n >= 0 else NO_RULE


def _each_meaning(rules: Iterable[tuple[bool, str]], *, dollars: bool) -> Iterator[tuple[bool, str, bool]]:
    """Each rule as whether it allows, its pattern as paths are spelt, and whether the path must end with it.

    Who allows index.html allows the folder.
    """
    for allows, written in rules:
        pattern = f"/{written}" if written.startswith(("http://", "https://")) else written
        ends = pattern.endswith("$")
        text = _spelt(pattern[:-1] if ends else pattern)
        yield allows, text, ends
        if ends and dollars:
            yield allows, text + "$", False
        if allows and pattern.endswith("/index.html"):
            yield True, text.removesuffix("index.html"), True


def _spelt(pattern: str) -> str:
    if _AS_IT_IS.fullmatch(pattern):
        return pattern
    return _unified(_ESCAPE.sub(lambda escape: escape[0].upper(), quote(pattern, safe=_ASCII)))


def _unified(text: str) -> str:
    """A text whose escapes of printable characters are taken off; those that it keeps are in upper case already."""
    for tens, escapes in _DECODED.items():
        if tens in text:
            for escape, char in escapes:
                text = text.replace(escape, char)
    return text


def _length(text: str) -> int:
    return len(text) + 2 * len(_COUNTED_AS_ESCAPE.findall(text))


def _surcharge(pieces: tuple[str, ...], path: str) -> int:
    """Steps that searches take beside one each: a path that is full of a piece's beginning takes more."""
    return sum(path.count(piece[:4]) * len(piece) >> 5 for piece in pieces if len(piece) > 4)
