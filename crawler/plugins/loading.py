"""Find, load and try plugins, and adapt them for a crawl.

A plugin that cannot be loaded or does not fit its extension point ends the command at its start. If a plugin fails for
a URL during a crawl, the first failure is logged, and a default applies: score 1, accepted, revisited by value. A
reader that fails makes the page unreadable; it runs in the parser processes, within their limits.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from crawler.core.http.urls import Url
from crawler.core.page.document import Document
from crawler.errors import BadInput, PluginBroken
from crawler.plugins import points
from crawler.plugins.points import NotUsable, PluginGroup

if TYPE_CHECKING:  # slow imports, which parser processes and crawls without plugins do not need
    from importlib.metadata import EntryPoint

    from crawler.core.freshness.policies import VisitResult
    from crawler.core.freshness.visit_terms import CrawlDefaults

log = logging.getLogger("recrawl.plugins")

BUILTIN_POLICIES = frozenset({"value", "similarity", "fixed"})


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """A plugin that is installed or named in the setting.

    point: the entry point group.  target: the object that the entry point names.  problem: why the plugin cannot be
    used; empty if it can.
    """

    name: str
    point: str
    package: str
    target: str
    is_used: bool
    problem: str


@dataclass(frozen=True, slots=True)
class PluginReader:
    """A reference to a reader plugin, which a parser process loads once by its name."""

    name: str

    def __call__(self, body: bytes, *, url: Url, content_type: str) -> Document:
        """Read a body. Raise NotUsable, with the plugin's name, for any exception except MemoryError."""
        plugin = load_reader(self.name)
        try:
            return points.read_document(plugin, body, url=url, content_type=content_type)
        except MemoryError:
            raise  # the body is tried again with more memory
        except NotUsable as error:
            raise NotUsable(f"the plugin {self.name} {error}") from error
        except Exception as error:
            raise NotUsable(f"the plugin {self.name} fails: {_describe_error(error)}") from error


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins of a process, as core uses them.

    page_score: returns the product of all scores of a URL, 0 to 1000; None if there are no scores.
    accepts: returns whether all filters accept a URL; None if there are no filters.
    readers: by media type.  revisits: revisit policies by name.
    """

    page_score: Callable[[Url], float] | None = None
    accepts: Callable[[Url], bool] | None = None
    readers: Mapping[str, PluginReader] = field(default_factory=dict)
    revisits: Mapping[str, "PluginPolicy"] = field(default_factory=dict)

    def find_reader(self, content_type: str) -> PluginReader | None:
        """Return the plugin that reads bodies with this Content-Type; None if there is none."""
        return self.readers.get(points.parse_media_type(content_type)) if self.readers else None


NO_PLUGINS = Plugins()


class _GuardedPlugins:
    """Plugins of one kind that are called with URLs. Failures are caught, and the first of each is logged."""

    def __init__(self, plugins: Sequence[tuple[str, Any]]) -> None:
        self._plugins = plugins
        self._failed: set[str] = set()

    def call_each(self, call: Callable[[Any, Url], Any], url: Url) -> Iterator[Any]:
        """Yield the results of the plugins that do not fail."""
        for name, plugin in self._plugins:
            try:
                result = call(plugin, url)
            except Exception as error:  # noqa: BLE001  a plugin may raise anything, and the crawl continues
                if name not in self._failed:
                    self._failed.add(name)
                    facts = {"plugin": name, "url": url, "error": _describe_error(error), "further": "not logged"}
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
    """A revisit policy of a plugin, as core uses it. If the plugin fails for a page, the default policy is used."""

    def choose_interval(self, visit: "VisitResult") -> timedelta:
        from crawler.core.freshness.policies import VALUE_POLICY

        waits = self.call_each(lambda plugin, _: points.compute_wait(plugin, visit), visit.url)
        return next(waits, None) or VALUE_POLICY.choose_interval(visit)

    @property
    def fixed_interval(self) -> timedelta | None:
        return None


@cache
def load_plugins(names: tuple[str, ...]) -> Plugins:
    """Load the named plugins in their order and try each once. Raise PluginBroken for the first unusable one.

    A name selects all plugins with that name, of any extension point.
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
    """List all installed and named plugins, with the problems of the named ones. Only named ones are imported."""
    named_plugins = [status for status, _ in _load_and_try(names)]
    return named_plugins + [_build_status(entry, used=False) for entry in list_installed() if entry.name not in names]


def add_plugin_defaults(defaults: "CrawlDefaults", names: tuple[str, ...]) -> "CrawlDefaults":
    """Return the defaults with the score and revisit policies of the named plugins. Raise PluginBroken."""
    plugins = load_plugins(names)
    return replace(defaults, page_score=plugins.page_score, plugin_policies=plugins.revisits) if names else defaults


def is_known_policy(policy_name: str, names: tuple[str, ...]) -> bool:
    """Return whether a revisit policy exists, built in or in the named plugins."""
    with suppress(BadInput):
        require_policy(policy_name, names)
        return True
    return False


def require_policy(policy_name: str, names: tuple[str, ...]) -> None:
    """Raise BadInput unless a revisit policy exists, built in or in the named plugins."""
    from crawler.core.freshness.policies import parse_policy

    try:
        parse_policy(policy_name, load_plugins(names).revisits)
    except ValueError as error:
        raise BadInput(str(error)) from error


def list_installed() -> "list[EntryPoint]":
    """List all plugins of installed packages, by name, without importing them."""
    from importlib.metadata import entry_points

    entries = [each for point in PluginGroup for each in entry_points(group=point.value)]
    return sorted(entries, key=lambda each: (each.name, each.group, _describe_package(each)))


@cache
def load_reader(name: str) -> Any:
    """Load the named reader without trying it."""
    (entry,) = (each for each in list_installed() if each.name == name and each.group == PluginGroup.READER)
    return _instantiate(entry)


def _load_and_try(names: Sequence[str]) -> Iterator[tuple[PluginStatus, Any]]:
    """Load and try each named plugin; yield None instead of one that cannot be used."""
    readers: dict[str, str] = {}  # by media type
    installed = list_installed() if names else []
    for name in dict.fromkeys(names):
        entries = [each for each in installed if each.name == name]
        if not entries:
            available = ", ".join(dict.fromkeys(each.name for each in installed)) or "none"
            problem = f"RECRAWL_PLUGINS names {name!r}, but no installed package has a plugin of that name"
            yield PluginStatus(name, "", "", "", is_used=False, problem=f"{problem}; available: {available}"), None
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


def _load_usable(entry: "EntryPoint", duplicates: "Sequence[EntryPoint]", readers: Mapping[str, str]) -> Any:
    """Load and try a plugin. readers: earlier reader plugins by media type.  Raise PluginBroken if it is unusable."""
    if len(duplicates) > 1:
        raise PluginBroken(f"the plugin {entry.name} is defined twice: {' and '.join(map(_describe, duplicates))}")
    with redirect_stdout(sys.stderr):  # stdout may be a JSON document
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
            problem = f"fails at its first call: {_describe_error(error)}"
            raise PluginBroken(f"the plugin {_describe(entry)} {problem}") from error
    if entry.group == PluginGroup.REVISIT and entry.name in BUILTIN_POLICIES:
        raise PluginBroken(f"the plugin {_describe(entry)} has the name of a built-in policy; rename the plugin")
    for each in media_types:
        if each in readers:
            raise PluginBroken(f"the plugin {_describe(entry)} reads {each}, as {readers[each]} does")
    return plugin


def _instantiate(entry: "EntryPoint") -> Any:
    loaded = entry.load()
    return loaded() if isinstance(loaded, type) else loaded


def _describe_package(entry: "EntryPoint") -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown package"


def _describe(entry: "EntryPoint") -> str:
    return f"{entry.name} ({entry.group}, {entry.value} of {_describe_package(entry)})"


def _build_status(entry: "EntryPoint", *, used: bool, problem: str = "") -> PluginStatus:
    return PluginStatus(entry.name, entry.group, _describe_package(entry), entry.value, is_used=used, problem=problem)


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
