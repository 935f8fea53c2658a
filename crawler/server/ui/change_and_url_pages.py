"""The data of two pages of the web UI: the list of changes, and the page about one URL."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.changes import (
    AppDatabase,
    ChangeFilter,
    EventKind,
    FeedItem,
    get_domain,
    list_names,
    read_newest_changes,
)
from crawler.app.explain import Domain, ParserPool, UrlExplanation, explain_page
from crawler.app.page_values import ValueSeries, read_series
from crawler.app.pages import PageHistory, VersionsQuery, read_history
from crawler.app.registration import parse_typed_url
from crawler.app.tags import get_tag, list_tags
from crawler.errors import BadInput
from crawler.format.kinds import NEWS

PAGE_SIZE = 12  # changes on one page of the list
MAX_VERSIONS = 50  # versions of a page that are shown at once
# The periods of the list of changes, by their values in the URL.
SPANS = {
    "1d": ("the last 24 hours", timedelta(days=1)),
    "7d": ("the last 7 days", timedelta(days=7)),
    "30d": ("the last 30 days", timedelta(days=30)),
}
KIND_NAMES = {
    EventKind.ADDED: "added",
    EventKind.CHANGED: "changed",
    EventKind.MOVED: "moved",
    EventKind.GONE: "gone",
    EventKind.EXCLUDED: "excluded",
    EventKind.RESTORED: "restored",
    EventKind.TEMPLATE: "template (whole site)",
    EventKind.DEFERRED: "deferred (crawler trap)",
    EventKind.RESUMED: "resumed (crawler trap)",
    EventKind.HINT: "hint (change signal)",
    EventKind.FAILING: "failing",
    EventKind.RECOVERED: "recovered",
    EventKind.VALUE: "value",
}


@dataclass(frozen=True, slots=True)
class ChangeListQuery:
    """The filter of the list of changes. since: a key of SPANS, or empty for all stored changes.

    before: the cursor, which is `more` of the previous page.  q: words of the URL or of what changed.
    """

    domain: str = ""
    tag: str = ""
    kinds: frozenset[EventKind] = NEWS
    since: str = ""
    before: str = ""
    q: str = ""


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """One page of the list of changes.

    names, tags: the domains and tags to choose from.  more: the cursor of the next page; empty on the last one.
    """

    at: datetime
    query: ChangeListQuery
    names: tuple[str, ...]
    items: tuple[FeedItem, ...]
    more: str
    tags: tuple[str, ...] = ()


async def load_change_facts(db: AppDatabase, query: ChangeListQuery, *, at: datetime) -> ChangeFacts:
    """Load the newest changes that match a filter. Raises BadInput."""
    only = await get_domain(db, query.domain) if query.domain else None
    tag = (await get_tag(db, query.tag)).tag.name if query.tag else None
    if query.since and query.since not in SPANS:
        raise BadInput(f"{query.since[:40]!r} is not a period of this list: use one of {', '.join(SPANS)}")
    since = at - SPANS[query.since][1] if query.since else None
    before = _parse_position(query.before)
    domain_id, words = only.id if only is not None else None, tuple(query.q.split())
    where = ChangeFilter(domain_id=domain_id, kinds=query.kinds, since=since, words=words, tag=tag)
    items = await read_newest_changes(db, where, before=before, max_count=PAGE_SIZE + 1, at=at)
    more = ""
    if len(items) > PAGE_SIZE:
        last_at, position = items[PAGE_SIZE - 1].page_cursor
        more = f"{last_at.timestamp():.6f}_{position}"
    names, tags = tuple(sorted(await list_names(db))), tuple(each.tag.name for each in await list_tags(db))
    return ChangeFacts(at, query, names=names, items=tuple(items[:PAGE_SIZE]), more=more, tags=tags)


def _parse_position(typed: str) -> tuple[datetime, int] | None:
    if not typed:
        return None
    seconds, _, position = typed.partition("_")
    try:
        return datetime.fromtimestamp(float(seconds), UTC), int(position)
    except (ValueError, OverflowError, OSError) as error:
        problem = f"{typed[:40]!r} is not a valid cursor of this list"
        raise BadInput(f"{problem}: go back to the first page of changes") from error


@dataclass(frozen=True, slots=True)
class UrlFacts:
    """The data of the page about one URL. history: None if the URL is not tracked.  values: its series."""

    explanation: UrlExplanation
    history: PageHistory | None
    values: list[ValueSeries]


async def load_url_facts(
    db: AppDatabase, domain: Domain, text: str, query: VersionsQuery, *, parsers: ParserPool, at: datetime
) -> UrlFacts:
    """Load the data about one URL of a domain. Raises BadInput for an invalid URL."""
    explanation, history = await explain_page(db, domain, parse_typed_url(text), at=at), None
    values = await read_series(db, domain, explanation.url)
    if not explanation.untracked:
        history = await read_history(db, domain, explanation.url, query, max_count=MAX_VERSIONS, parsers=parsers)
    return UrlFacts(explanation, history, values)
