"""The extension points: for each the Protocol of its plugins, how one is tried, and what it may answer.

A further point is a Protocol, a function that tries a plugin of it, an entry of POINTS, and in `loaded` the form in
which core is given it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

from crawler.core.http.urls import Url
from crawler.core.page.document import Document, build_document

if TYPE_CHECKING:  # it takes numpy along, which a process that parses does not need
    from crawler.core.freshness.policies import VisitResult

MAX_SCORE = 1000.0
PROBE_URL = Url("https://example.com/a/page?of=1")
# Web pages are read by recrawl alone: what it compares of them are elements, which no plugin gives.
WEB_PAGES = frozenset({"text/html", "application/xhtml+xml"})


class PluginGroup(StrEnum):
    """The entry point groups."""

    PAGE_SCORE = "recrawl.page_score"
    URL_FILTER = "recrawl.url_filter"
    READER = "recrawl.reader"
    REVISIT = "recrawl.revisit"


class PageScore(Protocol):
    """How much pages matter, by their URLs."""

    def score(self, url: str) -> float:
        """How many times as important the page is as it would be without, 0 to 1000; 1 changes nothing."""
        ...


class UrlFilter(Protocol):
    """Which URLs are pages at all, beside what a domain includes and excludes."""

    def accepts(self, url: str) -> bool:
        """Whether the URL may be crawled."""
        ...


@dataclass(frozen=True, slots=True)
class ReadContent:
    """The content of a body. text: a line for each block that is compared.  links: absolute, or relative to the body.

    An object with these three attributes serves as well.
    """

    text: str
    title: str = ""
    links: Sequence[str] = ()


class ReaderOfType(Protocol):
    """A reader of bodies that are no web pages.

    media_types: those that it reads, such as ("text/csv",).
    A reader may have an attribute `sample`, a body that it can read: then it is tried with that at start, and otherwise
    with an empty body, which it may refuse by an exception.
    """

    media_types: tuple[str, ...]

    def read(self, body: bytes, *, url: str, content_type: str) -> ReadContent:
        """The content of a body. An exception means that the body cannot be read."""
        ...


class RevisitRule(Protocol):
    """When a page is looked at again, in the domains whose user has chosen the plugin by its name."""

    def choose_interval(self, visit: "VisitResult") -> timedelta:
        """The time from a good look until the next one, above 0. It is brought within the page's bounds."""
        ...


class NotUsable(Exception):
    """What is wrong with a plugin, in words that go on after its name."""


def compute_score(plugin: PageScore, url: Url) -> float:
    """The score that a plugin gives. NotUsable if it is none."""
    score: object = plugin.score(url)
    if isinstance(score, bool) or not isinstance(score, Real) or not 0 <= float(score) <= MAX_SCORE:
        raise NotUsable(f"scores {url} {_format_value(score)}, not a number from 0 to {MAX_SCORE:g}")
    return float(score)


def check_accepts(plugin: UrlFilter, url: Url) -> bool:
    """Whether a plugin accepts the URL. NotUsable if it says neither."""
    accepted: object = plugin.accepts(url)
    if not isinstance(accepted, bool):
        raise NotUsable(f"answers {_format_value(accepted)} to {url}, not True or False")
    return accepted


def read_document(plugin: ReaderOfType, body: bytes, *, url: Url, content_type: str) -> Document:
    """What a plugin reads in a body. NotUsable if it is no content."""
    content: object = plugin.read(body, url=url, content_type=content_type)
    text, title, links = (getattr(content, name, None) for name in ("text", "title", "links"))
    if not isinstance(text, str) or not isinstance(title, str):
        raise NotUsable(f"reads {_format_value(content)}, not a text, a title and links")
    if not isinstance(links, Sequence) or isinstance(links, str | bytes):
        raise NotUsable(f"reads the links {_format_value(links)}, not a sequence of strings")
    if not all(isinstance(link, str) for link in links):
        raise NotUsable("reads links that are not strings")
    return build_document(text, title=title, links=links, url=url)


def compute_wait(plugin: RevisitRule, visit: "VisitResult") -> timedelta:
    """The wait that a plugin wants. NotUsable if it is none."""
    wait: object = plugin.choose_interval(visit)
    if not isinstance(wait, timedelta) or wait <= timedelta(0):
        raise NotUsable(f"lets {visit.url} wait {_format_value(wait)}, not a timedelta above 0")
    return wait


def read_media_types(plugin: ReaderOfType) -> tuple[str, ...]:
    """The media types that a plugin reads, in lower case. NotUsable if these are none, or not for plugins."""
    value: object = getattr(plugin, "media_types", None)
    is_list = isinstance(value, tuple | list) and all(isinstance(each, str) and "/" in each for each in value)
    if not isinstance(value, tuple | list) or not value or not is_list:
        raise NotUsable(f"has the media_types {_format_value(value)}, not a tuple such as ('text/csv',)")
    media_types = tuple(parse_media_type(each) for each in value)
    if reserved := WEB_PAGES.intersection(media_types):
        raise NotUsable(f"reads {min(reserved)}, which recrawl reads itself")
    return media_types


def parse_media_type(content_type: str) -> str:
    """The media type that a Content-Type names, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def _try_reader(plugin: ReaderOfType) -> None:
    sample = getattr(plugin, "sample", None)
    try:
        read_document(
            plugin, b"" if sample is None else sample, url=PROBE_URL, content_type=read_media_types(plugin)[0]
        )
    except Exception as error:
        if sample is not None or isinstance(error, NotUsable):
            raise  # else there is nothing in an empty body that it would have to find


def _try_revisit(plugin: RevisitRule) -> None:
    from crawler.core.freshness.estimates import DAY, DEFAULT_MAGNITUDE, PRIOR
    from crawler.core.freshness.policies import VisitResult

    compute_wait(
        plugin,
        VisitResult(
            url=PROBE_URL,
            at=datetime(2026, 1, 1, tzinfo=UTC),
            waited=timedelta(0),
            planned=None,
            changed=False,
            distance_bits=None,
            usual_magnitude=DEFAULT_MAGNITUDE,
            visits=1,
            rate_estimate=PRIOR,
            importance=1.0,
            shadow_price=0.25,
            min_interval=timedelta(minutes=10),
            max_interval=180 * DAY,
        ),
    )


def _format_value(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  a stranger's object may not even have a name
        text = "something"
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({type(value).__name__})"


# The method that each plugin of a group must have, as it is called, and what asks one for a first answer.
POINTS: Mapping[PluginGroup, tuple[str, Callable[[Any], object]]] = {
    PluginGroup.PAGE_SCORE: ("score(url)", lambda plugin: compute_score(plugin, PROBE_URL)),
    PluginGroup.URL_FILTER: ("accepts(url)", lambda plugin: check_accepts(plugin, PROBE_URL)),
    PluginGroup.READER: ("read(body, *, url, content_type)", _try_reader),
    PluginGroup.REVISIT: ("choose_interval(visit)", _try_revisit),
}


def require_usable(group: PluginGroup, plugin: Any) -> None:
    """Raise NotUsable unless a plugin has its group's method and answers a first call with the right type.

    Raise what the plugin raises, too.
    """
    method, try_out = POINTS[group]
    if not callable(getattr(plugin, method.partition("(")[0], None)):
        raise NotUsable(f"has no method {method}")
    try_out(plugin)
