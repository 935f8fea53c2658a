"""Volatile link parameters: sessions and tokens, whose value does not affect where a link leads.

A parameter that differs within seconds at one path (/go?id=7) may be significant at another (/file.php?id=17). If it
differs at several paths and is steady at hardly any, it is volatile everywhere. A path is here a link's URL without its
parameters.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct, field

from crawler.core.noise.stability import UNPROVEN, VolatilityCount
from crawler.core.noise.words import Words, keep_newest, split_words
from crawler.core.page.block import Block, BlockKind
from crawler.core.page.fingerprint import hash_text

MAX_PARAMETERS = 1024  # names per domain; the oldest are dropped first
MAX_NAME_CHARS = 200
MAX_PATHS_PER_NAME = 16  # paths of one parameter, volatile and steady ones each
# Paths at which a parameter must be volatile to count as volatile everywhere, except where it is steady.
ENOUGH_VOLATILE_PATHS = 3
MAX_STEADY_SHARE = 0.25  # maximum number of steady paths per volatile path


class LinkParameter(Struct, frozen=True):
    """The behavior of one link parameter in second fetches.

    volatile_paths: paths at which it differed, by compute_path_hash.
    steady_paths: other paths at which it was found.
    """

    volatile_paths: Mapping[int, VolatilityCount] = field(default_factory=dict)
    steady_paths: Mapping[int, None] = field(default_factory=dict)

    def is_volatile(self, path: int) -> bool:
        if path in self.steady_paths:
            return False
        return self.volatile_paths.get(path, UNPROVEN).is_proven or self.is_volatile_everywhere

    @property
    def is_volatile_everywhere(self) -> bool:
        proven = sum(proof.is_proven for proof in self.volatile_paths.values())
        return proven >= ENOUGH_VOLATILE_PATHS and len(self.steady_paths) <= MAX_STEADY_SHARE * proven


LinkParameters = Mapping[str, LinkParameter]  # by name; only parameters with a volatile path


def drop_volatile_parameters(parameters: LinkParameters, words: Words) -> Words:
    """Return the words of a link without its volatile parameters."""
    known = [parameters.get(parse_parameter_name(word)) for word in words]
    if not any(known):
        return words
    path = compute_path_hash(words)
    pairs = zip(words, known, strict=True)
    return tuple(word for word, parameter in pairs if parameter is None or not parameter.is_volatile(path))


def has_doubted_parameter(parameters: LinkParameters, words: Words) -> bool:
    """Return whether a parameter of a link is volatile, but did not differ in its last second fetch."""
    path = compute_path_hash(words)
    known_parameters = [parameters[name] for name in map(parse_parameter_name, words) if name in parameters]
    return any(each.volatile_paths.get(path, UNPROVEN).steady > 0 for each in known_parameters)


def parse_parameter_name(word: str) -> str:
    """Return the name of the parameter in a word of a link, or "" for another part of the URL."""
    name, equals, _ = word.partition("=")
    return name if equals else ""


@lru_cache(4096)
def compute_path_hash(words: Words) -> int:
    """Return a hash of a link without its parameters."""
    return hash_text(" ".join(word for word in words if not parse_parameter_name(word)))


ParameterAtPath = tuple[str, int]  # a parameter's name, and compute_path_hash of the link


def compare_parameters(first: Iterable[Block], second: Iterable[Block]) -> dict[ParameterAtPath, bool]:
    """Return, for each parameter at a path in both fetches, whether all its values differ."""
    one, other = _group_values(first), _group_values(second)
    return {parameter: one[parameter].isdisjoint(other[parameter]) for parameter in one.keys() & other.keys()}


def _group_values(blocks: Iterable[Block]) -> Mapping[ParameterAtPath, set[str]]:
    values: dict[ParameterAtPath, set[str]] = defaultdict(set)
    for block in blocks:
        if block.kind is BlockKind.LINK and "=" in block.text:
            words = split_words(block)
            for name, word in zip(map(parse_parameter_name, words), words, strict=True):
                if 0 < len(name) <= MAX_NAME_CHARS:
                    values[name, compute_path_hash(words)].add(word)
    return values


def learn_parameters(before: LinkParameters, outcomes: Mapping[ParameterAtPath, bool]) -> LinkParameters:
    """Return the parameters after one second fetch. outcomes: whether each parameter found there differed."""
    parameters = dict(before)
    for name in sorted({name for (name, _), differed in outcomes.items() if differed}):
        parameters[name] = parameters.pop(name, LinkParameter())
    for (name, path), differed in sorted(outcomes.items()):
        if name in parameters:
            parameters[name] = _update_parameter(parameters[name], path, differed=differed)
    return keep_newest({name: each for name, each in parameters.items() if each.volatile_paths}, MAX_PARAMETERS)


def _update_parameter(parameter: LinkParameter, path: int, *, differed: bool) -> LinkParameter:
    is_new_path = path not in parameter.volatile_paths and path not in parameter.steady_paths
    if differed and is_new_path and parameter.is_volatile_everywhere:
        return parameter  # otherwise the paths of one page's links would displace all others
    volatile_paths, steady_paths = dict(parameter.volatile_paths), dict(parameter.steady_paths)
    proof = volatile_paths.pop(path, UNPROVEN).add_fetch(differed=differed)
    if proof != UNPROVEN:
        steady_paths.pop(path, None)
        return LinkParameter(keep_newest(volatile_paths | {path: proof}, MAX_PATHS_PER_NAME), steady_paths)
    return LinkParameter(volatile_paths, keep_newest({**steady_paths, path: None}, MAX_PATHS_PER_NAME))
