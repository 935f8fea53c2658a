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
    from crawler.core.freshness.policies import Looked
    from crawler.core.freshness.terms import Defaults

log = logging.getLogger("recrawl.plugins")

SETTING = "RECRAWL_PLUGINS"
OWN_POLICIES = frozenset({"price", "similarity", "fixed"})


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """A plugin that is installed, or that the setting names. problem: why it cannot be used, or empty."""

    name: str
    point: str
    package: str
    target: str
    used: bool
    problem: str


@dataclass(frozen=True, slots=True)
class PluginReader:
    """A reader as it goes to a process that parses: by its name, under which the process loads it once."""

    name: str

    def __call__(self, body: bytes, *, url: Url, content_type: str) -> Document:
        """Document of the body. NotUsable, naming the plugin, whatever the plugin raised; but MemoryError."""
        plugin = reader_named(self.name)
        try:
            return points.document_by(plugin, body, url=url, content_type=content_type)
        except MemoryError:
            raise  # it may be read with more
        except NotUsable as error:
            raise NotUsable(f"the plugin {self.name} {error}") from error
        except Exception as error:
            raise NotUsable(f"the plugin {self.name} fails: {_said(error)}") from error


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

    def reader_of(self, content_type: str) -> PluginReader | None:
        """Which plugin reads bodies with that Content-Type; None: recrawl does."""
        return self.readers.get(points.media_type_of(content_type)) if self.readers else None


NO_PLUGINS = Plugins()


class _Careful:
    """Plugins of one kind that are asked about URLs; the first failure of each is told, and none goes further."""

    def __init__(self, plugins: Sequence[tuple[str, Any]]) -> None:
        self._plugins = plugins
        self._failed: set[str] = set()

    def asked(self, ask: Callable[[Any, Url], Any], url: Url) -> Iterator[Any]:
        """The answers of those that do not fail."""
        for name, plugin in self._plugins:
            try:
                answer = ask(plugin, url)
            except Exception as error:  # noqa: BLE001  a stranger's code may raise anything, and the crawl goes on
                if name not in self._failed:
                    self._failed.add(name)
                    facts = {"plugin": name, "url": url, "error": _said(error), "further": "untold"}
                    log.warning("plugin.failed", extra=facts)
            else:
                yield answer


class _Scores(_Careful):
    def __call__(self, url: Url) -> float:
        product = 1.0
        for score in self.asked(points.score_by, url):
            product *= score
        return min(product, points.MOST_SCORE)


class _Filters(_Careful):
    def __call__(self, url: Url) -> bool:
        return all(self.asked(points.accepted_by, url))


class PluginPolicy(_Careful):
    """A revisit policy of a plugin, as core takes it. Where the plugin fails at a page, the price decides there."""

    def after(self, look: "Looked") -> timedelta:
        from crawler.core.freshness.policies import BY_PRICE

        waits = self.asked(lambda plugin, _: points.wait_by(plugin, look), look.url)
        return next(waits, None) or BY_PRICE.after(look)

    @property
    def standing(self) -> timedelta | None:
        return None


@cache
def load(names: tuple[str, ...]) -> Plugins:
    """The plugins of those names, in their order, each tried once; PluginBroken for the first that cannot be used.

    A name stands for all plugins of that name, whatever their extension points.
    """
    found: dict[PluginGroup, list[tuple[str, Any]]] = {point: [] for point in PluginGroup}
    readers: dict[str, PluginReader] = {}
    for status, plugin in _try_all(names):
        if status.problem:
            raise PluginBroken(status.problem)
        found[PluginGroup(status.point)].append((status.name, plugin))
        if status.point == PluginGroup.READER:
            readers |= dict.fromkeys(points.media_types_of(plugin), PluginReader(status.name))
    scores, filters = found[PluginGroup.PAGE_SCORE], found[PluginGroup.URL_FILTER]
    revisits = {name: PluginPolicy([(name, plugin)]) for name, plugin in found[PluginGroup.REVISIT]}
    return Plugins(_Scores(scores) if scores else None, _Filters(filters) if filters else None, readers, revisits)


def survey(names: tuple[str, ...]) -> list[PluginStatus]:
    """All plugins that are installed or named, and what is wrong with those that are named. Imports no others."""
    named = [status for status, _ in _try_all(names)]
    return named + [_status_of(entry, used=False) for entry in installed() if entry.name not in names]


def defaults_with(defaults: "Defaults", names: tuple[str, ...]) -> "Defaults":
    """The defaults with the score and the revisit policies of the plugins of those names. Raises PluginBroken."""
    plugins = load(names)
    return replace(defaults, page_score=plugins.page_score, revisits=plugins.revisits) if names else defaults


def is_policy(revisit: str, names: tuple[str, ...]) -> bool:
    """Whether a domain's setting names a revisit policy, with the plugins of those names."""
    try:
        require_policy(revisit, names)
    except BadInput:
        return False
    return True


def require_policy(revisit: str, names: tuple[str, ...]) -> None:
    """BadInput where a domain's setting names a revisit policy that is none, with the plugins of those names."""
    from crawler.core.freshness.policies import policy_of

    try:
        policy_of(revisit, load(names).revisits)
    except ValueError as error:
        raise BadInput(str(error)) from error


def installed() -> list[EntryPoint]:
    """All plugins that installed packages offer, by name. Imports none of them."""
    found = [each for point in PluginGroup for each in entry_points(group=point.value)]
    return sorted(found, key=lambda each: (each.name, each.group, _package_of(each)))


@cache
def reader_named(name: str) -> Any:
    """The reader of that name, loaded and not tried."""
    (entry,) = (each for each in installed() if each.name == name and each.group == PluginGroup.READER)
    return _made(entry)


def _try_all(names: Sequence[str]) -> Iterator[tuple[PluginStatus, Any]]:
    """Load and try each plugin of these names; yield None in place of one that cannot be used."""
    readers: dict[str, str] = {}  # by media type
    known = installed() if names else []
    for name in dict.fromkeys(names):
        entries = [each for each in known if each.name == name]
        if not entries:
            there = ", ".join(dict.fromkeys(each.name for each in known)) or "none"
            problem = (
                f"{SETTING} names {name!r}, and no installed package offers a plugin of that name; there is {there}"
            )
            yield PluginStatus(name, "", "", "", used=False, problem=problem), None
        for entry in entries:
            twins = [each for each in entries if each.group == entry.group]
            try:
                plugin = _usable(entry, twins, readers)
            except PluginBroken as error:
                yield _status_of(entry, used=False, problem=str(error)), None
                continue
            if entry.group == PluginGroup.READER:
                readers |= dict.fromkeys(points.media_types_of(plugin), name)
            yield _status_of(entry, used=True), plugin


def _usable(entry: EntryPoint, twins: Sequence[EntryPoint], readers: Mapping[str, str]) -> Any:
    """The plugin, loaded and tried. readers: which plugin before it reads a media type.  Raises PluginBroken."""
    if len(twins) > 1:
        raise PluginBroken(f"the plugin {entry.name} is offered twice: {' and '.join(map(_describe, twins))}")
    with redirect_stdout(sys.stderr):  # what a command prints there may be a JSON document
        try:
            plugin = _made(entry)
        except (Exception, SystemExit) as error:
            raise PluginBroken(f"the plugin {_describe(entry)} cannot be loaded: {_said(error)}") from error
        try:
            points.require_usable(PluginGroup(entry.group), plugin)
            read = points.media_types_of(plugin) if entry.group == PluginGroup.READER else ()
        except NotUsable as error:
            raise PluginBroken(f"the plugin {_describe(entry)} {error}") from error
        except (Exception, SystemExit) as error:
            raise PluginBroken(f"the plugin {_describe(entry)} fails at its first call: {_said(error)}") from error
    if entry.group == PluginGroup.REVISIT and entry.name in OWN_POLICIES:
        raise PluginBroken(f"the plugin {_describe(entry)} has the name of one of recrawl's own policies")
    for each in read:
        if each in readers:
            raise PluginBroken(f"the plugin {_describe(entry)} reads {each}, which {readers[each]} does, too")
    return plugin


def _made(entry: EntryPoint) -> Any:
    found = entry.load()
    return found() if isinstance(found, type) else found


def _package_of(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown package"


def _describe(entry: EntryPoint) -> str:
    return f"{entry.name} ({entry.group}, {entry.value} of {_package_of(entry)})"


def _status_of(entry: EntryPoint, *, used: bool, problem: str = "") -> PluginStatus:
    return PluginStatus(entry.name, entry.group, _package_of(entry), entry.value, used=used, problem=problem)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
