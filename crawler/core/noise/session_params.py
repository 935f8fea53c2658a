"""Volatile parameters of links: sessions and tokens, whose value does not matter for where a link leads.

A parameter that differs within seconds at one path (/go?id=7) says nothing of another path (/file.php?id=17), unless
it does so at several paths and stands still at hardly any.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from crawler.core.noise.stability import UNPROVEN, VolatilityCount
from crawler.core.noise.words import Words, newest, words_of
from crawler.core.page.fingerprint import number_of
from crawler.core.page.outline import Block, BlockKind

MOST_PARAMETERS = 1024  # names; a site that makes up more of them has links that are noise
MOST_NAME = 200  # characters
MOST_BEHIND = 16  # paths kept for one name
ENOUGH_BEHIND = 3  # paths at which a parameter is volatile, to call it so at all paths but those where it stands still
MOST_STILL = 0.25  # paths where it stands still, at most, for each path where it is volatile


@dataclass(frozen=True, slots=True)
class Parameter:
    """Second fetches of links with one parameter. behind: paths at which it moved, by path_of.  still: other paths."""

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


def without_volatile(parameters: Parameters, words: Words) -> Words:
    """The words of a link without its volatile parameters."""
    if not any(parameter_of(word) in parameters for word in words):
        return words
    path = path_of(words)

    def is_volatile(word: str) -> bool:
        known = parameters.get(parameter_of(word))
        return known is not None and known.is_volatile(path)

    return tuple(word for word in words if not is_volatile(word))


def are_doubted(parameters: Parameters, words: Words) -> bool:
    """Whether a parameter of a link is volatile but stood still in the last second fetch that met it."""
    path = path_of(words)
    known = [parameters[name] for name in map(parameter_of, words) if name in parameters]
    return any(each.behind.get(path, UNPROVEN).steady > 0 for each in known)


def parameter_of(step: str) -> str:
    name, equals, _ = step.partition("=")
    return name if equals else ""


@lru_cache(4096)
def path_of(words: Words) -> int:
    """A hash of a link without its parameters."""
    return number_of(" ".join(word for word in words if not parameter_of(word)))


ParameterAtPath = tuple[str, int]  # a parameter's name, and the link's path by path_of


def moved_in(first: Iterable[Block], second: Iterable[Block]) -> dict[ParameterAtPath, bool]:
    """For each parameter that both fetches have, whether all its values differ."""
    one, other = _values(first), _values(second)
    return {behind: one[behind].isdisjoint(other[behind]) for behind in one.keys() & other.keys()}


def _values(blocks: Iterable[Block]) -> Mapping[ParameterAtPath, set[str]]:
    found: dict[ParameterAtPath, set[str]] = defaultdict(set)
    for block in blocks:
        if block.kind is BlockKind.LINK and "=" in block.text:
            words = words_of(block)
            for word in words:
                name = parameter_of(word)
                if name and len(name) <= MOST_NAME:
                    found[name, path_of(words)].add(word)
    return found


def learn_parameters(known: Parameters, moved: Mapping[ParameterAtPath, bool]) -> Parameters:
    """The parameters after one second fetch. moved: for each parameter it met, whether it differed."""
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
