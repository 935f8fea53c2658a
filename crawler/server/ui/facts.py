"""What the pages show that is asked for by an address: the newest changes under a filter, and one URL."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.changes import Database, EventKind, FeedItem, domain_named, names, newest_changes
from crawler.app.explain import Domain, ParserPool, UrlExplanation, explain_page
from crawler.app.pages import PageHistory, VersionsQuery, read_history
from crawler.app.registration import url_of
from crawler.errors import BadInput
from crawler.format.kinds import NEWS

SHOWN = 25  # changes of one page of the list
VERSIONS = 50  # of a page, shown at once
SPANS = {  # as an address has them
    "1d": ("the last 24 hours", timedelta(days=1)),
    "7d": ("the last 7 days", timedelta(days=7)),
    "30d": ("the last 30 days", timedelta(days=30)),
}
NAMES = {
    EventKind.FIRST: "first seen",
    EventKind.CHANGED: "changed",
    EventKind.MOVED: "moved",
    EventKind.GONE: "gone",
    EventKind.REFUSED: "may not be fetched any more",
    EventKind.BACK: "back",
    EventKind.BOILERPLATE: "the site's frame changed",
    EventKind.HELD_BACK: "pages like it are put off",
    EventKind.LET_GO: "pages like it are asked for again",
    EventKind.HINT: "said to have changed",
}


@dataclass(frozen=True, slots=True)
class ChangesAsked:
    """The filter as it was typed. since: one of SPANS, or empty for all that is kept.

    before: the place after which to go on, as `more` of the page before has it.
    """

    domain: str = ""
    kinds: frozenset[EventKind] = NEWS
    since: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """A page of the list. names: all domains to choose from.  more: the place from which to go on; empty at the end."""

    at: datetime
    asked: ChangesAsked
    names: tuple[str, ...]
    items: tuple[FeedItem, ...]
    more: str


async def change_facts(db: Database, asked: ChangesAsked, *, at: datetime) -> ChangeFacts:
    """The newest changes under a filter. Raises BadInput."""
    only = await domain_named(db, asked.domain) if asked.domain else None
    if asked.since and asked.since not in SPANS:
        raise BadInput(f"{asked.since[:40]!r} is no span of this list: choose among {', '.join(SPANS)}")
    since = at - SPANS[asked.since][1] if asked.since else None
    before = _place(asked.before)
    items = await newest_changes(db, only=only, kinds=asked.kinds, since=since, before=before, most=SHOWN + 1, at=at)
    more = ""
    if len(items) > SHOWN:
        last_at, position = items[SHOWN - 1].place
        more = f"{last_at.timestamp():.6f}_{position}"
    return ChangeFacts(at=at, asked=asked, names=tuple(sorted(await names(db))), items=tuple(items[:SHOWN]), more=more)


def _place(typed: str) -> tuple[datetime, int] | None:
    if not typed:
        return None
    seconds, _, position = typed.partition("_")
    try:
        return datetime.fromtimestamp(float(seconds), UTC), int(position)
    except (ValueError, OverflowError, OSError) as error:
        raise BadInput(f"{typed[:40]!r} is no place in the list of changes") from error


@dataclass(frozen=True, slots=True)
class UrlFacts:
    """What the page of one URL shows. history: None if it is not tracked."""

    explanation: UrlExplanation
    history: PageHistory | None


async def url_facts(
    db: Database, domain: Domain, text: str, query: VersionsQuery, *, readers: ParserPool, at: datetime
) -> UrlFacts:
    """Return all about one URL of a domain. Raises BadInput for what is none."""
    found = await explain_page(db, domain, url_of(text), at=at)
    if found.untracked:
        return UrlFacts(found, None)
    return UrlFacts(found, await read_history(db, domain, found.url, query, max_count=VERSIONS, readers=readers))
