"""The decision about a visit to a URL list: a sitemap, a sitemap index, a feed or a text file of URLs.

A list is a page with validators, a change-rate estimate, a due time and cash. A read is informative if it reveals new
pages, or changes of known pages (hints); then the list counts as changed. Its importance is what informative reads
revealed recently, in pages of mean importance.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.change.change import Change, Evidence
from crawler.core.change.verdict import Verdict
from crawler.core.freshness.signals import SignalSource
from crawler.core.http.response import Fetched
from crawler.core.page.fingerprint import compute_digest
from crawler.core.page.lists.dates import ListDate
from crawler.core.page.lists.url_list import ListEntry, ListKind, UrlList
from crawler.core.page.snapshot import Snapshot, build_snapshot, parse_body
from crawler.core.visit.lifecycle import REVISIT_GONE_AFTER, build_failed_visit
from crawler.core.visit.links import resolve_link
from crawler.core.visit.state import AWAY, State
from crawler.core.visit.update import build_learned_visit
from crawler.core.visit.visit import DomainKnowledge, Link, ListResult, ListStats, Target, Visit, build_unchanged_visit

# News are what a read reveals, in pages of mean importance; see `compute_list_news`.
MIN_NEWS = 0.1  # minimum of an informative read, for example a single hint with this value
MAX_NEWS = 50.0  # maximum that counts per read, because more pages are rarely fetched before the next read
MAX_AVERAGED_VISITS = 8  # informative reads that are averaged in the value of a list
MAX_AHEAD = timedelta(days=1)  # by which a date may be in the future, because of clocks and time zones
SUMMARY_TYPE = "text/plain; charset=utf-8"


class ListedLink(Struct, frozen=True):
    """A URL of the domain in a list, with the data that the list gives for it."""

    link: Link
    date: ListDate | None = None
    change_interval: timedelta | None = None
    is_list: bool = False


def resolve_entries(
    entries: Iterable[ListEntry], *, depth: int, knowledge: DomainKnowledge
) -> Iterator[ListedLink | None]:
    """Yield the entries as links of the domain, or None for an entry on another host, which the list may not contain.

    depth: that of the pages, one more than the list's.
    Source: sitemaps.org/protocol.html, "Sitemap file location".
    """
    for entry in entries:
        link = resolve_link(entry.url, depth=depth, knowledge=knowledge, is_list=entry.is_list)
        yield None if link is None else ListedLink(link, entry.date, entry.change_interval, entry.is_list)


def get_signal_source(kind: ListKind) -> SignalSource:
    """Return the source of the change signals from a list of this kind."""
    return SignalSource.FEED if kind is ListKind.FEED else SignalSource.SITEMAP


def is_in_future(date: ListDate, *, now: datetime) -> bool:
    """Return whether a date is too far in the future to be a change signal."""
    return date.at > now + MAX_AHEAD


def find_signal_time(
    date: ListDate, *, before: datetime | None, last_good_at: datetime | None, now: datetime
) -> datetime | None:
    """Return when a page changed since its last successful visit according to an entry's date, or None if unknown.

    A date is a span of time, such as a day. before: the previous date of the page in lists of this source, if any. If
    the date is later than that one, the page changed within the span, which may include the last visit. The span of a
    first date must be entirely after the visit.
    """
    if last_good_at is None or is_in_future(date, now=now):
        return None
    latest = date.at if before is None else date.end
    if latest <= last_good_at or (before is not None and date.at <= before):
        return None
    return min(date.end, now)


def compute_list_news(result: ListResult, stats: ListStats) -> float:
    """Return the news of a read, in pages of mean importance: new pages, and hints weighted by their value."""
    return result.new_pages + result.hints * stats.hint_value


def update_list_value(stats: ListStats, news: float) -> float:
    """Return the list's value (ListStats) after one more read. Only informative reads count, never the first."""
    if not stats.reads or news < MIN_NEWS:
        return stats.value
    return stats.value + (min(news, MAX_NEWS) - stats.value) / min(stats.informative_reads + 1, MAX_AVERAGED_VISITS)


def format_summary(url_list: UrlList) -> bytes:
    """Return the text that is stored for a version of a list, unless it is a feed, instead of a body of up to 50 MB."""
    dates = [entry.date.at for entry in url_list.entries if entry.date is not None]
    lists = sum(entry.is_list for entry in url_list.entries)
    lines = (
        f"{url_list.kind}: {len(url_list.entries) - lists} pages, {lists} further lists",
        f"newest date: {max(dates).isoformat() if dates else 'none'}",
        f"read to its end: {url_list.finding or 'yes'}",
        f"entries: {url_list.digest.hex()}",
    )
    return "\n".join(lines).encode()


def is_same_list(target: Target, url_list: UrlList) -> bool:
    """Return whether a list has the same entries as at its last read. Not for feeds, which are stored as pages."""
    before = target.version
    if before is None or target.state is not State.FETCHED or target.list_stats is None:
        return False
    return before.body_digest == compute_digest(format_summary(url_list))


def build_list_visit(
    target: Target, response: Fetched, url_list: UrlList, result: ListResult, *, now: datetime
) -> Visit:
    """Build the Visit of a list that was read. Its cash goes to the virtual page.

    Like the virtual page, a list links to all pages; along its links, thousands of pages would get almost nothing.
    """
    stats = target.list_stats or ListStats()
    before = target.version
    change = Change.CHANGED if compute_list_news(result, stats) >= MIN_NEWS else Change.COSMETIC
    if before is None:
        change = Change.ADDED
    elif is_same_list(target, url_list):
        change = Change.UNCHANGED
    evidence = Evidence.BYTES if change is Change.UNCHANGED else Evidence.ENTRIES
    if target.state in AWAY and before is not None:
        change = Change.RESTORED
    result = _rate_list(result, stats)
    weighed = replace(target, importance=result.value)
    is_new = change in {Change.ADDED, Change.CHANGED, Change.RESTORED}
    snapshot = _build_snapshot(target, url_list) if is_new else None
    return replace(
        build_learned_visit(weighed, Verdict(change, evidence), response, now=now),
        target=target,
        links=(),
        recipients=(),
        external_links=(),
        list_result=result,
        snapshot=snapshot,
    )


def add_list_result(visit: Visit, result: ListResult) -> Visit:
    """Add the list result to the Visit of a feed, which is also read as a page."""
    return replace(visit, list_result=_rate_list(result, visit.target.list_stats or ListStats()))


def _rate_list(result: ListResult, stats: ListStats) -> ListResult:
    """Add the value of the list to a result. The first read does not count as informative."""
    news = compute_list_news(result, stats)
    is_informative = stats.reads > 0 and news >= MIN_NEWS
    return replace(result, value=update_list_value(stats, news), is_informative=is_informative)


def build_no_list_visit(target: Target, response: Fetched, finding: str, *, now: datetime) -> Visit:
    """Build the Visit of a body that is not a usable list. A URL that never was a list is rarely visited again."""
    if target.version is not None:
        return build_failed_visit(target, response, now=now, reason=finding)
    return replace(
        build_unchanged_visit(target, response, now=now),
        verdict=Verdict(Change.GONE, Evidence.STATUS),
        state=State.GONE,
        due_at=now + min(REVISIT_GONE_AFTER, target.terms.max_interval),
        reason=finding,
        failures=0,
    )


def _build_snapshot(target: Target, url_list: UrlList) -> Snapshot:
    body = format_summary(url_list)
    parsed = parse_body(body, url=target.url, content_type=SUMMARY_TYPE, with_blocks=False)
    number = target.version.number + 1 if target.version else 1
    # Without a fingerprint, because all summaries are similar.
    version = replace(parsed.version, number=number, fingerprint=None)
    return build_snapshot(parsed.content, version, body, SUMMARY_TYPE)
