"""Find the rule of a robots.txt that decides about a path, in bounded time for any file and path.

By RFC 9309, the longest matching pattern decides. Prefix patterns are found by bisection. Of the wildcard patterns,
only those that may match are tried: each is indexed by a rare start, end or run of characters that it requires. The
number of steps is limited. A path that needs more counts as disallowed: it is safer not to request a page than to miss
a rule among thousands that almost match.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote

from crawler.core.http.expressions import compile_any_of

MAX_STEPS = 48  # searches per path, and more for a long one, about 0.1 us each: 5,000 links take less than 50 ms
MIN_INDEXED_WILDCARDS = 4  # fewer wildcard patterns are tried one by one
MAX_CHEAP_SEARCH = 4000  # length of a path times length of a part; a longer search counts as several steps
# By the length of a run: how many times more paths contain it, or end with it, than contain a run of four characters.
RUN_WEIGHTS = {1: 5000, 2: 30, 4: 1}
END_WEIGHTS = {1: 20, 2: 2}
START_WEIGHT = 2

# Patterns and paths are normalized: printable ASCII is literal, everything else is an upper-case escape of UTF-8.
# Escaped slashes, percent signs and asterisks differ from literal ones, and stay escaped.
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_NORMALIZED = re.compile("[!-$&-~]*")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_PRINTABLE = re.compile("%[2-7][0-9A-F]")
_DECODED = {f"%{ord(char):02X}": char for char in _ASCII if char not in "/%*"}
# A character that is counted like an escape, as three characters, in the length of a pattern.
_COUNTED_AS_ESCAPE = re.compile(r"[^\w.~/=*%-]", re.ASCII)

_Rank = tuple[int, bool]  # of a rule: the length of its pattern, and whether it allows
_Numbers = dict[str, list[int]]  # an index: the numbers of wildcard patterns, by start, end or run
_IndexKey = tuple[_Numbers, str, int]  # an index, a key in it and the weight of the key
NO_RULE: _Rank = (-1, True)


class RuleIndex:
    """An index of the rules of one group. rules: whether each allows, and its pattern as written.

    literal_dollars: also match a final "$" literally; needed only for paths that contain one.
    """

    def __init__(self, rules: Iterable[tuple[bool, str]], *, literal_dollars: bool = False) -> None:
        exact, prefixes, wildcards = dict[str, _Rank](), dict[str, _Rank](), list[_Wildcard]()
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
        self._overridable = frozenset(not rule.rank[1] for rule in wildcards)  # verdicts that a wildcard may override
        self._wildcard_index = _WildcardIndex(self._wildcards) if len(wildcards) >= MIN_INDEXED_WILDCARDS else None
        # Whether all wildcard patterns can be tried for any path.
        steps = sum(1 + len(rule.parts) for rule in wildcards)
        self._has_few_wildcards = self._wildcard_index is None or steps <= MAX_STEPS
        self._with_dollars: RuleIndex | None = None

    def allows(self, path: str) -> bool:
        """Return whether the longest matching pattern allows the path. Allow wins a tie, and applies without a match.

        path: with its query, as returned by `get_path_and_query` for a normalized URL.
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
        """Return whether a path is allowed. rank: that of its best rule without a wildcard."""
        chars = len(path)
        steps_left = MAX_STEPS + (chars >> 4 if self._has_few_wildcards else 0)
        steps_per_part = 1 + (chars >> 9)
        index = self._wildcard_index
        candidates = index.find_candidates(path, steps_left) if index is not None else None
        if candidates is None and not self._has_few_wildcards:
            return False
        for rule in self._wildcards if candidates is None else map(self._wildcards.__getitem__, candidates):
            rule_rank, start, parts, end, min_chars, longest = rule
            if rule_rank <= rank:
                break
            steps_left -= 1
            if min_chars > chars or not path.startswith(start) or not path.endswith(end):
                continue
            if longest * chars > MAX_CHEAP_SEARCH:  # a path that repeats the beginning of a part takes more steps
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
    """An index of prefix patterns."""

    def __init__(self, prefixes: dict[str, _Rank]) -> None:
        self._texts = sorted(prefixes)
        # For each text: all its prefixes, shortest first, with the best rank so far. MAX_ROBOTS_BYTES limits chains to
        # a length of about 1,000.
        self._chains: list[tuple[tuple[str, _Rank], ...]] = []
        chain: list[tuple[str, _Rank]] = []
        for text in self._texts:
            while chain and not text.startswith(chain[-1][0]):
                chain.pop()
            chain.append((text, max(prefixes[text], chain[-1][1]) if chain else prefixes[text]))
            self._chains.append(tuple(chain))

    def find_rank(self, path: str) -> _Rank:
        """Return the best rank of a prefix of the path, or NO_RULE."""
        n = bisect_right(self._texts, path) - 1
        chain = self._chains[n] if n >= 0 else ()
        fitting = bisect_left(chain, x=True, key=lambda prefix: not path.startswith(prefix[0]))
        return chain[fitting - 1][1] if fitting else NO_RULE


class _Wildcard(NamedTuple):
    """A pattern with wildcards: its start, the parts that follow in this order, and its end ("" for any).

    min_chars: the minimum length of a matching path.  longest: the length of the longest part.
    """

    rank: _Rank
    start: str
    parts: tuple[str, ...]
    end: str
    min_chars: int
    longest: int


def _parse_wildcard(text: str, rank: _Rank, *, ends: bool) -> _Wildcard:
    """Parse a pattern with wildcards. ends: the path must end with it."""
    start, *parts = (part.replace("%2A", "*") for part in text.split("*"))
    end = parts.pop() if ends else ""
    between = tuple(filter(None, parts))
    min_chars = len(start) + sum(map(len, between)) + len(end)
    return _Wildcard(rank, start, between, end, min_chars, max(map(len, between), default=0))


class _WildcardIndex:
    """An index of wildcard patterns by one feature that a path must have: a start, an end, or a run of characters.

    So of tens of thousands of patterns, only the few that may match a path are tried.
    """

    def __init__(self, rules: list[_Wildcard]) -> None:
        starts, ends, runs = _Numbers(), _Numbers(), _Numbers()
        self._rules = rules
        self._always: list[int] = []
        for number, rule in enumerate(rules):
            keys = _list_index_keys(rule, starts, ends, runs)
            costs = ((weight * (1 + len(index.get(key, ()))), index, key) for index, key, weight in keys)
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
        """Return the numbers of patterns that may match the path, in order; None if they are too many for max_steps."""
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


def _list_index_keys(rule: _Wildcard, starts: _Numbers, ends: _Numbers, runs: _Numbers) -> Iterator[_IndexKey]:
    """Yield the possible index keys of a rule: an end, a start, or runs of characters, each with index and weight."""
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
    """Return the largest power of two up to the length of the text, at most 16."""
    return min(1 << len(text).bit_length() - 1, 16)


def _expand_rules(rules: Iterable[tuple[bool, str]], *, literal_dollars: bool) -> Iterator[tuple[bool, str, bool]]:
    """Yield for each rule whether it allows, its normalized pattern, and whether the path must end with it.

    A rule that allows index.html also allows the folder.  literal_dollars: see RuleIndex.
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
    if _NORMALIZED.fullmatch(pattern):
        return pattern
    return _decode_printable(_ESCAPE.sub(lambda escape: escape[0].upper(), quote(pattern, safe=_ASCII)))


def _decode_printable(text: str) -> str:
    """Decode the escapes of printable characters. The remaining escapes must be in upper case already."""
    return _PRINTABLE.sub(lambda escape: _DECODED.get(escape[0], escape[0]), text)
