"""A look at a URL list, decided: a sitemap, an index, a feed or a text file of URLs, and what it told of other pages.

A list is a page, with validators, a belief, a due time and cash. It changes where it tells something: pages that were
not known, or changes of pages that are. Its weight is what a look that told anything has told of late, in pages of mean
importance; one that never tells anything is asked once a day, and one that lies is worth nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.change.change import Change, Evidence, Verdict
from crawler.core.freshness.signals import SignalSource
from crawler.core.http.response import Fetched
from crawler.core.page.fingerprint import compute_digest
from crawler.core.page.lists.dates import ListDate
from crawler.core.page.lists.url_list import ListEntry, ListKind, UrlList
from crawler.core.page.snapshot import Snapshot, build_snapshot, parse_body
from crawler.core.visit.lifecycle import REVISIT_GONE_AFTER, build_failed_visit
from crawler.core.visit.links import resolve_link
from crawler.core.visit.update import build_learned_visit
from crawler.core.visit.visit import (
    AWAY,
    DomainKnowledge,
    Link,
    ListResult,
    ListStats,
    State,
    Target,
    Visit,
    build_unchanged_visit,
)

MIN_NEWS = 0.1  # of a look that told something: that one change hinted at is true with this chance
MAX_NEWS = 50.0  # that one look counts for: more than that cannot be fetched before the list is asked again
MAX_AVERAGED_VISITS = 8  # telling looks, of which a list's worth is the mean
MAX_AHEAD = timedelta(days=1)  # that a date may lie in the future: clocks and zones
SUMMARY_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ListedLink:
    """A URL of the domain that a list names, with why it may not be fetched (Link), and what the list says of it."""

    link: Link
    date: ListDate | None = None
    change_interval: timedelta | None = None
    is_list: bool = False


def resolve_entries(
    entries: Iterable[ListEntry], *, depth: int, knowledge: DomainKnowledge
) -> Iterator[ListedLink | None]:
    """The entries as links of the domain; None for each that is on another host: it cannot speak for that one.

    depth: of the pages: by one more than the list's.
    Source: sitemaps.org/protocol.html, "Sitemap file location".
    """
    for entry in entries:
        link = resolve_link(entry.url, depth=depth, knowledge=knowledge, is_list=entry.is_list)
        yield None if link is None else ListedLink(link, entry.date, entry.change_interval, entry.is_list)


def get_signal_source(kind: ListKind) -> SignalSource:
    """The source of the change signals that a list of this kind gives."""
    return SignalSource.FEED if kind is ListKind.FEED else SignalSource.SITEMAP


def is_in_future(date: ListDate, *, now: datetime) -> bool:
    """Whether a date lies so far in the future that it tells nothing of a change."""
    return date.at > now + MAX_AHEAD


def find_signal_time(
    date: ListDate, *, before: datetime | None, last_good_at: datetime | None, now: datetime
) -> datetime | None:
    """Return when a known page has changed since its last good look, by an entry's date; None if that says nothing.

    before: the date that lists of this source gave it last.  A date that moved tells of a change within its span, so
    that a day on which the page was looked at may be later than the look. One that is read for the first time has to
    be later as a whole.
    """
    if last_good_at is None or is_in_future(date, now=now):
        return None
    latest = date.at if before is None else date.end
    if latest <= last_good_at or (before is not None and date.at <= before):
        return None
    return min(date.end, now)


def compute_list_news(result: ListResult, stats: ListStats) -> float:
    """What a look at a list has told, in pages of mean importance: new ones, and changes by the chance of each."""
    return result.new_pages + result.hints * stats.hint_value


def update_list_value(stats: ListStats, news: float) -> float:
    """What a telling look at the list is worth, after one that told so much; what it told first says nothing."""
    if not stats.reads or news < MIN_NEWS:
        return stats.value
    return stats.value + (min(news, MAX_NEWS) - stats.value) / min(stats.informative_reads + 1, MAX_AVERAGED_VISITS)


def format_summary(url_list: UrlList) -> bytes:
    """What is kept of a version of a list in place of its body, which may be fifty megabytes."""
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
    """Whether a list, but no feed, says what it said when it was read last."""
    before = target.version
    if before is None or target.state is not State.FETCHED or target.list_stats is None:
        return False
    return before.body_digest == compute_digest(format_summary(url_list))


def build_list_visit(
    target: Target, response: Fetched, url_list: UrlList, result: ListResult, *, now: datetime
) -> Visit:
    """The Visit of a look at a list that was read. A list is a leaf of the economy: its cash goes to the reserve.

    It names all pages alike, as the reserve pays them; along its links it would pay thousands of pages next to nothing.
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
    return replace(
        build_learned_visit(weighed, Verdict(change, evidence), response, now=now),
        target=target,
        links=(),
        recipients=(),
        external_links=(),
        list_result=result,
        snapshot=_build_snapshot(target, url_list)
        if change in {Change.ADDED, Change.CHANGED, Change.RESTORED}
        else None,
    )


def add_list_result(visit: Visit, result: ListResult) -> Visit:
    """The Visit of a feed, which is also read as a page, with what it told of other pages."""
    return replace(visit, list_result=_rate_list(result, visit.target.list_stats or ListStats()))


def _rate_list(result: ListResult, stats: ListStats) -> ListResult:
    """What a look brought, with what the list is worth after it. What it told first says nothing of what will come."""
    news_found = compute_list_news(result, stats)
    return replace(
        result, value=update_list_value(stats, news_found), has_told=stats.reads > 0 and news_found >= MIN_NEWS
    )


def build_no_list_visit(target: Target, response: Fetched, finding: str, *, now: datetime) -> Visit:
    """The Visit of a body that is no list, or is refused. What never was a list is hardly asked for again."""
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
    parsed = parse_body(body, url=target.url, content_type=SUMMARY_TYPE, robots_tag=None, with_blocks=False)
    number = target.version.number + 1 if target.version else 1
    # Without a fingerprint: all of them say nearly the same.
    version = replace(parsed.version, number=number, fingerprint=None)
    return build_snapshot(parsed.content, version, body, SUMMARY_TYPE)
