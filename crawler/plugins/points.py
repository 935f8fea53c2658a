"""The extension points: the Protocol of each, how its plugins are tried, and what they may return.

To add a point, add a Protocol, a function that tries a plugin, and an entry in POINTS; in `loading`, adapt it for core.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

from crawler.core.http.urls import Url
from crawler.core.page.document import Document, build_document

if TYPE_CHECKING:  # it imports numpy, which parser processes do not need
    from crawler.core.freshness.policies import VisitResult

MAX_SCORE = 1000.0
PROBE_URL = Url("https://example.com/a/page?of=1")
# Web pages are always read by recrawl, because it compares their elements, which plugins do not return.
WEB_PAGES = frozenset({"text/html", "application/xhtml+xml"})


class PluginGroup(StrEnum):
    """The entry point groups."""

    PAGE_SCORE = "recrawl.page_score"
    URL_FILTER = "recrawl.url_filter"
    READER = "recrawl.reader"
    REVISIT = "recrawl.revisit"


class PageScore(Protocol):
    """A score of pages by their URLs."""

    def score(self, url: str) -> float:
        """Return a factor on the page's importance, 0 to 1000; 1 changes nothing."""
        ...


class UrlFilter(Protocol):
    """A filter of URLs, in addition to a domain's include and exclude patterns."""

    def accepts(self, url: str) -> bool:
        """Return whether the URL may be crawled."""
        ...


@dataclass(frozen=True, slots=True)
class ReadContent:
    """The content of a body. text: one line for each block to compare.  links: absolute, or relative to the URL.

    Any object with these three attributes can be returned instead.
    """

    text: str
    title: str = ""
    links: Sequence[str] = ()


class ReaderOfType(Protocol):
    """A reader of bodies that are not web pages.

    media_types: the media types that it reads, such as ("text/csv",).
    A reader may have an attribute `sample` with a body that it can read. At start it is tried with that body, or with
    an empty body, for which it may raise an exception.
    """

    media_types: tuple[str, ...]

    def read(self, body: bytes, *, url: str, content_type: str) -> ReadContent:
        """Return the content of a body. Raise any exception if it cannot be read."""
        ...


class RevisitRule(Protocol):
    """A revisit policy, for domains whose `--revisit` setting names the plugin."""

    def choose_interval(self, visit: "VisitResult") -> timedelta:
        """Return the time from a successful visit to the next, above 0. recrawl limits it to the page's intervals."""
        ...


class NotUsable(Exception):
    """A problem with a plugin. The message continues a sentence that starts with the plugin's name."""


def compute_score(plugin: PageScore, url: Url) -> float:
    """Return a plugin's score of a URL. Raise NotUsable if it is invalid."""
    score: object = plugin.score(url)
    if isinstance(score, bool) or not isinstance(score, Real) or not 0 <= float(score) <= MAX_SCORE:
        raise NotUsable(f"returns the score {_format_value(score)} for {url}, not a number from 0 to {MAX_SCORE:g}")
    return float(score)


def check_accepts(plugin: UrlFilter, url: Url) -> bool:
    """Return whether a plugin accepts the URL. Raise NotUsable if it does not return a bool."""
    accepted: object = plugin.accepts(url)
    if not isinstance(accepted, bool):
        raise NotUsable(f"returns {_format_value(accepted)} for {url}, not True or False")
    return accepted


def read_document(plugin: ReaderOfType, body: bytes, *, url: Url, content_type: str) -> Document:
    """Read a body with a plugin. Raise NotUsable if the result is not valid content."""
    content: object = plugin.read(body, url=url, content_type=content_type)
    text, title, links = (getattr(content, name, None) for name in ("text", "title", "links"))
    if not isinstance(text, str) or not isinstance(title, str):
        raise NotUsable(f"returns {_format_value(content)}, not a text, a title and links")
    if not isinstance(links, Sequence) or isinstance(links, str | bytes):
        raise NotUsable(f"returns the links {_format_value(links)}, not a sequence of strings")
    if not all(isinstance(link, str) for link in links):
        raise NotUsable("returns links that are not strings")
    return build_document(text, title=title, links=links, url=url)


def compute_wait(plugin: RevisitRule, visit: "VisitResult") -> timedelta:
    """Return the interval that a plugin chooses. Raise NotUsable if it is invalid."""
    wait: object = plugin.choose_interval(visit)
    if not isinstance(wait, timedelta) or wait <= timedelta(0):
        raise NotUsable(f"returns the interval {_format_value(wait)} for {visit.url}, not a timedelta above 0")
    return wait


def read_media_types(plugin: ReaderOfType) -> tuple[str, ...]:
    """Return the media types that a plugin reads, in lowercase. Raise NotUsable if they are invalid or reserved."""
    value: object = getattr(plugin, "media_types", None)
    is_list = isinstance(value, tuple | list) and all(isinstance(each, str) and "/" in each for each in value)
    if not isinstance(value, tuple | list) or not value or not is_list:
        raise NotUsable(f"has the media_types {_format_value(value)}, not a tuple such as ('text/csv',)")
    media_types = tuple(parse_media_type(each) for each in value)
    if reserved := WEB_PAGES.intersection(media_types):
        raise NotUsable(f"reads {min(reserved)}, which recrawl reads itself")
    return media_types


def parse_media_type(content_type: str) -> str:
    """Return the media type of a Content-Type header, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def _try_reader(plugin: ReaderOfType) -> None:
    sample = getattr(plugin, "sample", None)
    try:
        body, content_type = b"" if sample is None else sample, read_media_types(plugin)[0]
        read_document(plugin, body, url=PROBE_URL, content_type=content_type)
    except Exception as error:
        if sample is not None or isinstance(error, NotUsable):
            raise  # otherwise it may reject the empty body


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
    except Exception:  # noqa: BLE001  even the repr of a plugin's object may fail
        text = "something"
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({type(value).__name__})"


# For each group: the method that its plugins must have, and a function that calls it once to try a plugin.
POINTS: Mapping[PluginGroup, tuple[str, Callable[[Any], object]]] = {
    PluginGroup.PAGE_SCORE: ("score(url)", lambda plugin: compute_score(plugin, PROBE_URL)),
    PluginGroup.URL_FILTER: ("accepts(url)", lambda plugin: check_accepts(plugin, PROBE_URL)),
    PluginGroup.READER: ("read(body, *, url, content_type)", _try_reader),
    PluginGroup.REVISIT: ("choose_interval(visit)", _try_revisit),
}


def require_usable(group: PluginGroup, plugin: Any) -> None:
    """Raise NotUsable unless a plugin has its group's method, and a first call returns the right type.

    Exceptions of the plugin are not caught, except when a reader without a sample rejects an empty body.
    """
    method, try_out = POINTS[group]
    if not callable(getattr(plugin, method.partition("(")[0], None)):
        raise NotUsable(f"has no method {method}")
    try_out(plugin)
