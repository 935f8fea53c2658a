"""Which parameters of links are volatile: sessions and tokens, which lead to the same page whatever they are.

One that differs within seconds behind one path (/go?id=7) says nothing of another one's (/file.php?id=17), unless it
does so behind several and stands still behind hardly any.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from crawler.core.page import Block, BlockKind, number_of
from crawler.core.volatile.bounds import newest
from crawler.core.volatile.stability import UNPROVEN, VolatilityCount
from crawler.core.volatile.words import Words, words_of

MOST_PARAMETERS = 1024  # names; a site that makes up more of them has links that are noise
MOST_NAME = 200  # characters
MOST_BEHIND = 16  # paths of one name
ENOUGH_BEHIND = 3  # paths; then it is one of all links, but for those behind which it stands still
MOST_STILL = 0.25  # as many paths of the latter kind, for each of the former


@dataclass(frozen=True, slots=True)
class Parameter:
    """How parameters of one name came through pairs. behind: where they moved, by path_of.  still: where they did
    not.
    """

    behind: Mapping[int, VolatilityCount] = field(default_factory=dict)
    still: Mapping[int, None] = field(default_factory=dict)

    def is_volatile(self, path: int) -> bool:
        if path in self.still:
            return False
        return self.behind.get(path, UNPROVEN).holds or self.is_everywhere

    @property
    def is_everywhere(self) -> bool:
        proven = sum(proof.holds for proof in self.behind.values())
        return proven >= ENOUGH_BEHIND and len(self.still) <= MOST_STILL * proven


Parameters = Mapping[str, Parameter]  # by name, of all that ever moved


def said_without(parameters: Parameters, words: Words) -> Words:
    """The words of a link without its volatile parameters."""
    if not any(parameter_of(word) in parameters for word in words):
        return words
    path = path_of(words)

    def is_volatile(word: str) -> bool:
        known = parameters.get(parameter_of(word))
        return known is not None and known.is_volatile(path)

    return tuple(word for word in words if not is_volatile(word))


def are_doubted(parameters: Parameters, words: Words) -> bool:
    """Whether a parameter of a link is volatile and stood still in the last pair that met it."""
    path = path_of(words)
    known = [parameters[name] for name in map(parameter_of, words) if name in parameters]
    return any(each.behind.get(path, UNPROVEN).steady > 0 for each in known)


def parameter_of(step: str) -> str:
    name, equals, _ = step.partition("=")
    return name if equals else ""


@lru_cache(4096)
def path_of(words: Words) -> int:
    """A number for where a link leads, whatever its parameters."""
    return number_of(" ".join(word for word in words if not parameter_of(word)))


Behind = tuple[str, int]  # a parameter's name, and the path that it stands behind


def moved_in(first: Iterable[Block], second: Iterable[Block]) -> dict[Behind, bool]:
    """Of the parameters that both looks of a pair have: whether all their values differ."""
    one, other = _values(first), _values(second)
    return {behind: one[behind].isdisjoint(other[behind]) for behind in one.keys() & other.keys()}


def _values(places: Iterable[Block]) -> Mapping[Behind, set[str]]:
    found: dict[Behind, set[str]] = defaultdict(set)
    for place in places:
        if place.kind is BlockKind.LINK and "=" in place.text:
            words = words_of(place)
            for word in words:
                name = parameter_of(word)
                if name and len(name) <= MOST_NAME:
                    found[name, path_of(words)].add(word)
    return found


def learn_parameters(known: Parameters, moved: Mapping[Behind, bool]) -> Parameters:
    """What one pair teaches."""
    found = dict(known)
    for name in sorted({name for (name, _), has_moved in moved.items() if has_moved}):
        found[name] = found.pop(name, Parameter())
    for (name, path), has_moved in sorted(moved.items()):
        if name in found:
            found[name] = _after(found[name], path, moved=has_moved)
    return newest({name: each for name, each in found.items() if each.behind}, MOST_PARAMETERS)


def _after(known: Parameter, path: int, *, moved: bool) -> Parameter:
    if moved and path not in known.behind and path not in known.still and known.is_everywhere:
        return known  # or the links of one page would push out those of all others
    behind, still = dict(known.behind), dict(known.still)
    proof = behind.pop(path, UNPROVEN).after(moved=moved)
    if proof != UNPROVEN:
        still.pop(path, None)
        behind[path] = proof
        return replace(known, behind=newest(behind, MOST_BEHIND), still=still)
    return Parameter(behind, newest({**still, path: None}, MOST_BEHIND))
