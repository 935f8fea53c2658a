"""Finding, loading and trying plugins, and the form in which a crawl uses them.

A plugin that cannot be loaded, or is not what its extension point asks for, ends the command at its start. One that
fails at a single URL during a crawl is told about once, and counts as if it had not been asked: score 1, accepted,
looked at again by price. A reader that fails makes that page unreadable; it runs in the processes that parse, within
their limits.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from crawler.core.http.urls import Url
from crawler.core.page.document import Document
from crawler.errors import BadInput, PluginBroken
from crawler.plugins import points
from crawler.plugins.points import NotUsable, PluginGroup

if TYPE_CHECKING:  # it takes numpy along, which a process that parses does not need
    from crawler.core.freshness.policies import VisitResult
    from crawler.core.freshness.terms import CrawlDefaults

log = logging.getLogger("recrawl.plugins")

SETTING = "RECRAWL_PLUGINS"
BUILTIN_POLICIES = frozenset({"value", "similarity", "fixed"})


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """A plugin that is installed, or that the setting names. problem: why it cannot be used, or empty."""

    name: str
    point: str
    package: str
    target: str
    is_used: bool
    problem: str


@dataclass(frozen=True, slots=True)
class PluginReader:
    """A reader as it goes to a process that parses: by its name, under which the process loads it once."""

    name: str

    def __call__(self, body: bytes, *, url: Url, content_type: str) -> Document:
        """Document of the body. NotUsable, naming the plugin, whatever the plugin raised; but MemoryError."""
        plugin = load_reader(self.name)
        try:
            return points.read_document(plugin, body, url=url, content_type=content_type)
        except MemoryError:
            raise  # it may be read with more
        except NotUsable as error:
            raise NotUsable(f"the plugin {self.name} {error}") from error
        except Exception as error:
            raise NotUsable(f"the plugin {self.name} fails: {_describe_error(error)}") from error


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins of a process, as core takes them.

    page_score: product of all scores of a URL, 0 to 1000.  accepts: whether all filters accept a URL.  None: there are
    none of the kind.  readers: by media type.  revisits: revisit policies, by name.
    """

    page_score: Callable[[Url], float] | None = None
    accepts: Callable[[Url], bool] | None = None
    readers: Mapping[str, PluginReader] = field(default_factory=dict)
    revisits: Mapping[str, "PluginPolicy"] = field(default_factory=dict)

    def find_reader(self, content_type: str) -> PluginReader | None:
        """Which plugin reads bodies with that Content-Type; None: recrawl does."""
        return self.readers.get(points.parse_media_type(content_type)) if self.readers else None


NO_PLUGINS = Plugins()


class _GuardedPlugins:
    """Plugins of one kind that are asked about URLs; the first failure of each is told, and none goes further."""

    def __init__(self, plugins: Sequence[tuple[str, Any]]) -> None:
        self._plugins = plugins
        self._failed: set[str] = set()

    def call_each(self, call: Callable[[Any, Url], Any], url: Url) -> Iterator[Any]:
        """The answers of those that do not fail."""
        for name, plugin in self._plugins:
            try:
                result = call(plugin, url)
            except Exception as error:  # noqa: BLE001  a stranger's code may raise anything, and the crawl goes on
                if name not in self._failed:
                    self._failed.add(name)
                    facts = {"plugin": name, "url": url, "error": _describe_error(error), "further": "untold"}
                    log.warning("plugin.failed", extra=facts)
            else:
                yield result


class _Scores(_GuardedPlugins):
    def __call__(self, url: Url) -> float:
        product = 1.0
        for score in self.call_each(points.compute_score, url):
            product *= score
        return min(product, points.MAX_SCORE)


class _Filters(_GuardedPlugins):
    def __call__(self, url: Url) -> bool:
        return all(self.call_each(points.check_accepts, url))


class PluginPolicy(_GuardedPlugins):
    """A revisit policy of a plugin, as core takes it. Where the plugin fails at a page, the price decides there."""

    def choose_interval(self, visit: "VisitResult") -> timedelta:
        from crawler.core.freshness.policies import VALUE_POLICY

        waits = self.call_each(lambda plugin, _: points.compute_wait(plugin, visit), visit.url)
        return next(waits, None) or VALUE_POLICY.choose_interval(visit)

    @property
    def fixed_interval(self) -> timedelta | None:
        return None


@cache
def load_plugins(names: tuple[str, ...]) -> Plugins:
    """The plugins of those names, in their order, each tried once; PluginBroken for the first that cannot be used.

    A name stands for all plugins of that name, whatever their extension points.
    """
    plugins_by_group: dict[PluginGroup, list[tuple[str, Any]]] = {point: [] for point in PluginGroup}
    readers: dict[str, PluginReader] = {}
    for status, plugin in _load_and_try(names):
        if status.problem:
            raise PluginBroken(status.problem)
        plugins_by_group[PluginGroup(status.point)].append((status.name, plugin))
        if status.point == PluginGroup.READER:
            readers |= dict.fromkeys(points.read_media_types(plugin), PluginReader(status.name))
    scores, filters = plugins_by_group[PluginGroup.PAGE_SCORE], plugins_by_group[PluginGroup.URL_FILTER]
    revisits = {name: PluginPolicy([(name, plugin)]) for name, plugin in plugins_by_group[PluginGroup.REVISIT]}
    return Plugins(_Scores(scores) if scores else None, _Filters(filters) if filters else None, readers, revisits)


def list_plugins(names: tuple[str, ...]) -> list[PluginStatus]:
    """All plugins that are installed or named, and what is wrong with those that are named. Imports no others."""
    named_plugins = [status for status, _ in _load_and_try(names)]
    return named_plugins + [_build_status(entry, used=False) for entry in list_installed() if entry.name not in names]


def add_plugin_defaults(defaults: "CrawlDefaults", names: tuple[str, ...]) -> "CrawlDefaults":
    """The defaults with the score and the revisit policies of the plugins of those names. Raises PluginBroken."""
    plugins = load_plugins(names)
    return replace(defaults, page_score=plugins.page_score, plugin_policies=plugins.revisits) if names else defaults


def is_known_policy(policy_name: str, names: tuple[str, ...]) -> bool:
    """Whether a domain's setting names a revisit policy, with the plugins of those names."""
    try:
        require_policy(policy_name, names)
    except BadInput:
        return False
    return True


def require_policy(policy_name: str, names: tuple[str, ...]) -> None:
    """BadInput where a domain's setting names a revisit policy that is none, with the plugins of those names."""
    from crawler.core.freshness.policies import parse_policy

    try:
        parse_policy(policy_name, load_plugins(names).revisits)
    except ValueError as error:
        raise BadInput(str(error)) from error


def list_installed() -> list[EntryPoint]:
    """All plugins that installed packages offer, by name. Imports none of them."""
    entries = [each for point in PluginGroup for each in entry_points(group=point.value)]
    return sorted(entries, key=lambda each: (each.name, each.group, _describe_package(each)))


@cache
def load_reader(name: str) -> Any:
    """The reader of that name, loaded and not tried."""
    (entry,) = (each for each in list_installed() if each.name == name and each.group == PluginGroup.READER)
    return _instantiate(entry)


def _load_and_try(names: Sequence[str]) -> Iterator[tuple[PluginStatus, Any]]:
    """Load and try each plugin of these names; yield None in place of one that cannot be used."""
    readers: dict[str, str] = {}  # by media type
    installed = list_installed() if names else []
    for name in dict.fromkeys(names):
        entries = [each for each in installed if each.name == name]
        if not entries:
            available = ", ".join(dict.fromkeys(each.name for each in installed)) or "none"
            problem = (
                f"{SETTING} names {name!r}, and no installed package offers a plugin of that name; there is {available}"
            )
            yield PluginStatus(name, "", "", "", is_used=False, problem=problem), None
        for entry in entries:
            duplicates = [each for each in entries if each.group == entry.group]
            try:
                plugin = _load_usable(entry, duplicates, readers)
            except PluginBroken as error:
                yield _build_status(entry, used=False, problem=str(error)), None
                continue
            if entry.group == PluginGroup.READER:
                readers |= dict.fromkeys(points.read_media_types(plugin), name)
            yield _build_status(entry, used=True), plugin


def _load_usable(entry: EntryPoint, duplicates: Sequence[EntryPoint], readers: Mapping[str, str]) -> Any:
    """The plugin, loaded and tried. readers: which plugin before it reads a media type.  Raises PluginBroken."""
    if len(duplicates) > 1:
        raise PluginBroken(f"the plugin {entry.name} is offered twice: {' and '.join(map(_describe, duplicates))}")
    with redirect_stdout(sys.stderr):  # what a command prints there may be a JSON document
        try:
            plugin = _instantiate(entry)
        except (Exception, SystemExit) as error:
            raise PluginBroken(f"the plugin {_describe(entry)} cannot be loaded: {_describe_error(error)}") from error
        try:
            points.require_usable(PluginGroup(entry.group), plugin)
            media_types = points.read_media_types(plugin) if entry.group == PluginGroup.READER else ()
        except NotUsable as error:
            raise PluginBroken(f"the plugin {_describe(entry)} {error}") from error
        except (Exception, SystemExit) as error:
            raise PluginBroken(
                f"the plugin {_describe(entry)} fails at its first call: {_describe_error(error)}"
            ) from error
    if entry.group == PluginGroup.REVISIT and entry.name in BUILTIN_POLICIES:
        raise PluginBroken(f"the plugin {_describe(entry)} has the name of one of recrawl's own policies")
    for each in media_types:
        if each in readers:
            raise PluginBroken(f"the plugin {_describe(entry)} reads {each}, which {readers[each]} does, too")
    return plugin


def _instantiate(entry: EntryPoint) -> Any:
    loaded = entry.load()
    return loaded() if isinstance(loaded, type) else loaded


def _describe_package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown package"


def _describe(entry: EntryPoint) -> str:
    return f"{entry.name} ({entry.group}, {entry.value} of {_describe_package(entry)})"


def _build_status(entry: EntryPoint, *, used: bool, problem: str = "") -> PluginStatus:
    return PluginStatus(entry.name, entry.group, _describe_package(entry), entry.value, is_used=used, problem=problem)


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
