"""A look at a URL list, decided: a sitemap, an index, a feed or a text file of URLs, and what it told of other pages.

A list is a page, with validators, a belief, a due time and cash. It changes where it tells something: pages that were
not known, or changes of pages that are. Its weight is what a look that told anything has told of late, in pages of mean
importance; one that never tells anything is asked once a day, and one that lies is worth nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.change.change import Change, Rung, Verdict
from crawler.core.freshness.signals import SignalSource
from crawler.core.http.response import Fetched
from crawler.core.page.fingerprint import digest
from crawler.core.page.lists.dates import ListDate
from crawler.core.page.lists.url_list import ListEntry, ListKind, UrlList
from crawler.core.page.snapshot import Snapshot, parse, snapshot_of
from crawler.core.visit.lifecycle import LOOK_AGAIN_GONE, failed_visit
from crawler.core.visit.links import link_of
from crawler.core.visit.update import learnt_visit
from crawler.core.visit.visit import AWAY, Known, KnownList, Link, ListNews, State, Target, Visit, unchanged_visit

LEAST_NEWS = 0.1  # of a look that told something: that one change hinted at is true with this chance
MOST_NEWS = 50.0  # that one look counts for: more than that cannot be fetched before the list is asked again
MOST_REMEMBERED = 8  # telling looks, of which a list's worth is the mean
MAX_AHEAD = timedelta(days=1)  # that a date may lie in the future: clocks and zones
SUMMARY_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ListedLink:
    """A URL of the domain that a list names, with why it may not be fetched (Link), and what the list says of it."""

    link: Link
    date: ListDate | None = None
    gap: timedelta | None = None
    is_list: bool = False


def listed_links(entries: Iterable[ListEntry], *, depth: int, known: Known) -> Iterator[ListedLink | None]:
    """The entries as links of the domain; None for each that is on another host: it cannot speak for that one.

    depth: of the pages: by one more than the list's.
    Source: sitemaps.org/protocol.html, "Sitemap file location".
    """
    for entry in entries:
        link = link_of(entry.url, depth=depth, known=known, is_list=entry.is_list)
        yield None if link is None else ListedLink(link, entry.date, entry.gap, entry.is_list)


def source_of(kind: ListKind) -> SignalSource:
    """The source of the change signals that a list of this kind gives."""
    return SignalSource.FEED if kind is ListKind.FEED else SignalSource.SITEMAP


def is_ahead(date: ListDate, *, now: datetime) -> bool:
    """Whether a date lies so far in the future that it tells nothing of a change."""
    return date.at > now + MAX_AHEAD


def signaled_at(
    date: ListDate, *, before: datetime | None, last_good_at: datetime | None, now: datetime
) -> datetime | None:
    """Return when a known page has changed since its last good look, by an entry's date; None if that says nothing.

    before: the date that lists of this source gave it last.  A date that moved tells of a change within its span, so
    that a day on which the page was looked at may be later than the look. One that is read for the first time has to
    be later as a whole.
    """
    if last_good_at is None or is_ahead(date, now=now):
        return None
    latest = date.at if before is None else date.end
    if latest <= last_good_at or (before is not None and date.at <= before):
        return None
    return min(date.end, now)


def news_of(news: ListNews, known: KnownList) -> float:
    """What a look at a list has told, in pages of mean importance: new ones, and changes by the chance of each."""
    return news.new_pages + news.hints * known.hint_worth


def worth_after(known: KnownList, news: float) -> float:
    """What a telling look at the list is worth, after one that told so much; what it told first says nothing."""
    if not known.reads or news < LEAST_NEWS:
        return known.worth
    return known.worth + (min(news, MOST_NEWS) - known.worth) / min(known.told + 1, MOST_REMEMBERED)


def summary_of(url_list: UrlList) -> bytes:
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
    if before is None or target.state is not State.KNOWN or target.known_list is None:
        return False
    return before.body_digest == digest(summary_of(url_list))


def list_visit(target: Target, answer: Fetched, url_list: UrlList, news: ListNews, *, now: datetime) -> Visit:
    """The Visit of a look at a list that was read. A list is a leaf of the economy: its cash goes to the reserve.

    It names all pages alike, as the reserve pays them; along its links it would pay thousands of pages next to nothing.
    """
    known = target.known_list or KnownList()
    before = target.version
    change = Change.CHANGED if news_of(news, known) >= LEAST_NEWS else Change.COSMETIC
    if before is None:
        change = Change.FIRST
    elif is_same_list(target, url_list):
        change = Change.SAME
    rung = Rung.BYTES if change is Change.SAME else Rung.ENTRIES
    if target.state in AWAY and before is not None:
        change = Change.BACK
    news = _weighed(news, known)
    weighed = replace(target, importance=news.worth)
    return replace(
        learnt_visit(weighed, Verdict(change, rung), answer, now=now),
        target=target,
        links=(),
        recipients=(),
        external_links=(),
        list_news=news,
        snapshot=_snapshot(target, url_list) if change in {Change.FIRST, Change.CHANGED, Change.BACK} else None,
    )


def with_news(visit: Visit, news: ListNews) -> Visit:
    """The Visit of a feed, which is also read as a page, with what it told of other pages."""
    return replace(visit, list_news=_weighed(news, visit.target.known_list or KnownList()))


def _weighed(news: ListNews, known: KnownList) -> ListNews:
    """What a look brought, with what the list is worth after it. What it told first says nothing of what will come."""
    told = news_of(news, known)
    return replace(news, worth=worth_after(known, told), has_told=known.reads > 0 and told >= LEAST_NEWS)


def no_list_visit(target: Target, answer: Fetched, finding: str, *, now: datetime) -> Visit:
    """The Visit of a body that is no list, or is refused. What never was a list is hardly asked for again."""
    if target.version is not None:
        return failed_visit(target, answer, now=now, reason=finding)
    return replace(
        unchanged_visit(target, answer, now=now),
        verdict=Verdict(Change.GONE, Rung.STATUS),
        state=State.GONE,
        due_at=now + min(LOOK_AGAIN_GONE, target.terms.most),
        reason=finding,
        failures=0,
    )


def _snapshot(target: Target, url_list: UrlList) -> Snapshot:
    body = summary_of(url_list)
    parsed = parse(body, url=target.url, content_type=SUMMARY_TYPE, robots_tag=None, outlined=False)
    number = target.version.number + 1 if target.version else 1
    # Without a fingerprint: all of them say nearly the same.
    version = replace(parsed.version, number=number, fingerprint=None)
    return snapshot_of(parsed.content, version, body, SUMMARY_TYPE)
