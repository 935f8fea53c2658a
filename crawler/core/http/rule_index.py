"""Which rule of a robots.txt decides about a path, in bounded time whatever the file and the path say.

RFC 9309 lets the longest pattern that fits decide. Patterns that fit all that begins so are found by bisection. Of
those with an asterisk further on only those are tried that may fit: each is filed under the rarest run of characters
that it asks for. What is tried is counted. Where a file asks for more than MAX_STEPS, the path counts as refused: an
owner who hides a rule among thousands that nearly fit is rather not asked than misunderstood.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote

from crawler.core.http.expressions import compile_any_of

MAX_STEPS = 48  # searches for a piece of a pattern, about 0.1 us each: 5,000 links take less than 50 ms
MIN_INDEXED_WILDCARDS = 4  # fewer wildcards are tried one by one
MAX_CHEAP_SEARCH = 4000  # characters of a path times those of a piece; beyond that a search may take many steps
# How many more paths have so many given characters somewhere, or at their end, than have four.
RUN_WEIGHTS = {1: 5000, 2: 30, 4: 1}
END_WEIGHTS = {1: 20, 2: 2}
START_WEIGHT = 2

# Both sides of a comparison are spelt alike: printable ASCII as it is, everything else as upper-case escapes of UTF-8.
# A slash, a percent sign and an asterisk mean something where they are not escaped, and stay what they are.
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_AS_IT_IS = re.compile("[!-$&-~]*")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_PRINTABLE = re.compile("%[2-7][0-9A-F]")
_DECODED = {f"%{ord(char):02X}": char for char in _ASCII if char not in "/%*"}
_COUNTED_AS_ESCAPE = re.compile(r"[^\w.~/=*%-]", re.ASCII)  # in the length of a pattern

_Rank = tuple[int, bool]  # of a rule: the length of its pattern, then whether it allows
_Numbers = dict[str, list[int]]
NO_RULE: _Rank = (-1, True)


class RuleIndex:
    """The rules of one group, each as whether it allows and its pattern as it is written.

    literal_dollars: a final "$" may also be meant as it stands, which only a path that has one can show.
    """

    def __init__(self, rules: Iterable[tuple[bool, str]], *, literal_dollars: bool = False) -> None:
        exact: dict[str, _Rank] = {}
        prefixes: dict[str, _Rank] = {}
        wildcards: list[_Wildcard] = []
        self._rules, self._literal_dollars = tuple(dict.fromkeys(rules)), literal_dollars
        for allows, text, ends in _expand_rules(self._rules, literal_dollars=literal_dollars):
            rank = (len(text) + 2 * len(_COUNTED_AS_ESCAPE.findall(text)) + ends, allows)
            if "*" in (text if ends else text.rstrip("*")):
                wildcards.append(_parse_wildcard(text, rank, ends=ends))
                continue
            plain, prefix = exact if ends else prefixes, text.rstrip("*").replace("%2A", "*")
            plain[prefix] = max(plain.get(prefix, NO_RULE), rank)
        self._exact, self._prefixes = exact, _PrefixIndex(prefixes)
        self._wildcards = sorted(wildcards, reverse=True)
        self._overridable = frozenset(not rule.rank[1] for rule in wildcards)  # verdicts that a wildcard may overrule
        self._wildcard_index = _WildcardIndex(self._wildcards) if len(wildcards) >= MIN_INDEXED_WILDCARDS else None
        # Of few all can be tried, whatever the path.
        self._has_few_wildcards = (
            self._wildcard_index is None or sum(1 + len(rule.parts) for rule in wildcards) <= MAX_STEPS
        )
        self._with_dollars: RuleIndex | None = None

    def allows(self, path: str) -> bool:
        """Whether the longest pattern that fits allows the path; Allow wins a draw, and where none fits.

        path: with its query, as `get_path_and_query` of a normalised URL gives it.
        """
        if "%" in path:
            path = _decode_printable(path).replace("%2A", "*")
        if "$" in path and not self._literal_dollars:
            if self._with_dollars is None:
                self._with_dollars = RuleIndex(self._rules, literal_dollars=True)
            return self._with_dollars.allows(path)
        rank = self._prefixes.find_rank(path)
        if path in self._exact:
            rank = max(rank, self._exact[path])
        return self._apply_wildcards(path, rank) if rank[1] in self._overridable else rank[1]

    def _apply_wildcards(self, path: str, rank: _Rank) -> bool:
        """What is decided where a rule of this rank fits, and a wildcard may say otherwise."""
        chars = len(path)
        steps_left = MAX_STEPS + (chars >> 4 if self._has_few_wildcards else 0)
        steps_per_part = 1 + (chars >> 9)
        candidates = (
            self._wildcard_index.find_candidates(path, steps_left) if self._wildcard_index is not None else None
        )
        if candidates is None and not self._has_few_wildcards:
            return False
        for rule in self._wildcards if candidates is None else map(self._wildcards.__getitem__, candidates):
            rule_rank, start, parts, end, min_chars, longest = rule
            if rule_rank <= rank:
                break
            steps_left -= 1
            if min_chars > chars or not path.startswith(start) or not path.endswith(end):
                continue
            if longest * chars > MAX_CHEAP_SEARCH:  # a path that is full of a piece's beginning takes more steps
                steps_left -= sum(path.count(part[:4]) * len(part) >> 5 for part in parts if len(part) > 4)
            at, stop = len(start), chars - len(end)
            for part in parts:
                steps_left -= steps_per_part
                if steps_left < 0:
                    return False
                at = path.find(part, at, stop)
                if at < 0:
                    break
                at += len(part)
            else:
                return rule_rank[1]
        return rank[1]


class _PrefixIndex:
    """Patterns that fit all that begins so. The ranks are those of the best one that fits."""

    def __init__(self, prefixes: dict[str, _Rank]) -> None:
        self._texts = sorted(prefixes)
        # Each of these with those that it begins with, the shortest first. A file has room for chains of 1,000 at most.
        self._chains: list[tuple[tuple[str, _Rank], ...]] = []
        chain: list[tuple[str, _Rank]] = []
        for text in self._texts:
            while chain and not text.startswith(chain[-1][0]):
                chain.pop()
            chain.append((text, max(prefixes[text], chain[-1][1]) if chain else prefixes[text]))
            self._chains.append(tuple(chain))

    def find_rank(self, path: str) -> _Rank:
        """The best rank of a prefix of the path, or that of no rule."""
        n = bisect_right(self._texts, path) - 1
        chain = self._chains[n] if n >= 0 else ()
        fitting = bisect_left(chain, x=True, key=lambda prefix: not path.startswith(prefix[0]))
        return chain[fitting - 1][1] if fitting else NO_RULE


class _Wildcard(NamedTuple):
    """A pattern with an asterisk: how it begins, what follows in this order, and how it ends ("": as it likes).

    min_chars: characters that it takes.  longest: of its pieces.
    """

    rank: _Rank
    start: str
    parts: tuple[str, ...]
    end: str
    min_chars: int
    longest: int


def _parse_wildcard(text: str, rank: _Rank, *, ends: bool) -> _Wildcard:
    """The wildcard that a pattern is. ends: a path must end with it."""
    start, *parts = (part.replace("%2A", "*") for part in text.split("*"))
    end = parts.pop() if ends else ""
    between = tuple(filter(None, parts))
    min_chars = len(start) + sum(map(len, between)) + len(end)
    return _Wildcard(rank, start, between, end, min_chars, max(map(len, between), default=0))


class _WildcardIndex:
    """The numbers of wildcards, each under one thing that a path must have: how it begins, how it ends, what is in it.

    So of tens of thousands only the few are tried that may fit a path.
    """

    def __init__(self, rules: list[_Wildcard]) -> None:
        starts: _Numbers = {}
        ends: _Numbers = {}
        runs: _Numbers = {}
        self._rules = rules
        self._always: list[int] = []
        for number, rule in enumerate(rules):
            costs = (
                (weight * (1 + len(index.get(key, ()))), index, key)
                for index, key, weight in _list_index_keys(rule, starts, ends, runs)
            )
            _, best_index, key = min(costs, key=itemgetter(0), default=(0, None, ""))
            if best_index is None:
                self._always.append(number)
            else:
                best_index.setdefault(key, []).append(number)
        self._starts, self._ends = _group_by_size(starts), _group_by_size(ends)
        for numbers in runs.values():
            numbers.sort(key=self._get_min_chars)
        self._runs = [(size, numbers, compile_any_of(numbers)) for size, numbers in _group_by_size(runs)]

    def find_candidates(self, path: str, max_steps: int) -> list[int] | None:
        """The wildcards that may fit the path, in order; None where it takes more than `most` steps to find them."""
        candidates = list(self._always)
        for size, numbers in self._starts:
            candidates += numbers.get(path[:size], ())
        for size, numbers in self._ends:
            candidates += numbers.get(path[-size:], ())
        for size, numbers, any_of_them in self._runs:
            if any_of_them.search(path) is None:
                continue
            for run in numbers.keys() & {path[at : at + size] for at in range(len(path) - size + 1)}:
                candidates += numbers[run][: bisect_right(numbers[run], len(path), key=self._get_min_chars)]
                if len(candidates) > max_steps:
                    return None
        return sorted(candidates)

    def _get_min_chars(self, number: int) -> int:
        return self._rules[number].min_chars


def _group_by_size(index: _Numbers) -> list[tuple[int, _Numbers]]:
    sizes: dict[int, _Numbers] = {}
    for key, numbers in index.items():
        sizes.setdefault(len(key), {})[key] = numbers
    return sorted(sizes.items())


def _list_index_keys(
    rule: _Wildcard, starts: _Numbers, ends: _Numbers, runs: _Numbers
) -> Iterator[tuple[_Numbers, str, int]]:
    """Under what a rule may be filed: how a path must begin, how it must end, what must stand in it.

    With where it is filed, and its weight.
    """
    start, parts, end = rule.start, rule.parts, rule.end
    if end:
        size = _round_down_to_power(end)
        yield ends, end[-size:], END_WEIGHTS.get(size, 1)
    if len(start) > 1:
        yield starts, start[: _round_down_to_power(start)], START_WEIGHT
    longest = max(parts, key=len, default="")
    for part in (longest, parts[-1]) if parts else ():
        size = min(_round_down_to_power(part), 4)
        last = len(part) - size
        for at in (last, 0, last // 2)[: last + 1]:
            yield runs, part[at : at + size], RUN_WEIGHTS[size]


def _round_down_to_power(text: str) -> int:
    """The greatest power of two that is no more than the length of the text, and at most 16."""
    return min(1 << len(text).bit_length() - 1, 16)


def _expand_rules(rules: Iterable[tuple[bool, str]], *, literal_dollars: bool) -> Iterator[tuple[bool, str, bool]]:
    """Each rule as whether it allows, its pattern as paths are spelt, and whether the path must end with it.

    Who allows index.html allows the folder.
    """
    for allows, rule_text in rules:
        pattern = f"/{rule_text}" if rule_text.startswith(("http://", "https://")) else rule_text
        ends = pattern.endswith("$")
        text = _normalize_pattern(pattern[:-1] if ends else pattern)
        yield allows, text, ends
        if ends and literal_dollars:
            yield allows, text + "$", False
        if allows and pattern.endswith("/index.html"):
            yield True, text.removesuffix("index.html"), True


def _normalize_pattern(pattern: str) -> str:
    if _AS_IT_IS.fullmatch(pattern):
        return pattern
    return _decode_printable(_ESCAPE.sub(lambda escape: escape[0].upper(), quote(pattern, safe=_ASCII)))


def _decode_printable(text: str) -> str:
    """A text whose escapes of printable characters are taken off; those that it keeps are in upper case already."""
    return _PRINTABLE.sub(lambda escape: _DECODED.get(escape[0], escape[0]), text)
