"""The page of one URL: its versions and what differs between them, what is believed of it, its next look and why."""

from dataclasses import dataclass
from datetime import datetime

from crawler.app.registration import url_of
from crawler.app.status import page_wait
from crawler.cli.actions.explain.signals import chance_now, shown_signals
from crawler.cli.actions.explain.why import (
    defaults_in_use,
    scope_now,
    why_belief,
    why_next,
    why_refused,
    why_untracked,
    worth_now,
)
from crawler.core.change import PageDiff
from crawler.core.domain import Domain
from crawler.core.http import Url
from crawler.core.visit import State
from crawler.engine import ParserPool, diff_versions
from crawler.format.reasons import RENDERING_WORDS
from crawler.settings import settings
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import Explanation, PageVersion, VersionContent

VERSIONS = 50  # shown at once
CONTEXT = 1  # unchanged blocks beside a change


@dataclass(frozen=True, slots=True)
class ComparedVersions:
    """Two versions of a page and what differs between them."""

    before: PageVersion
    after: PageVersion
    diff: PageDiff


@dataclass(frozen=True, slots=True)
class UrlFacts:
    """What the page of one URL shows.

    untracked: why it is not one of the domain's pages; empty for one that is.  next, belief, refused, signals: as
    `recrawl explain` says them.  waits: why its domain cannot be crawled now.  fresh: the chance that the copy is true.
    worth: of a look now, in importance x days.  more: the number of the last version shown; 0 at the end.
    """

    url: Url
    domain: Domain
    known: Explanation
    untracked: str
    next: str = ""
    belief: str = ""
    refused: str = ""
    signals: str = ""
    scripts: str = ""
    waits: str = ""
    fresh: float | None = None
    worth: float | None = None
    versions: tuple[PageVersion, ...] = ()
    more: int = 0
    content: VersionContent | None = None
    compared: ComparedVersions | None = None


@dataclass(frozen=True, slots=True)
class VersionsAsked:
    """Which versions are to be compared, 0 for the newest and the one before it; and from which on they are listed."""

    before: int = 0
    after: int = 0
    older_than: int | None = None


async def url_facts(
    db: Database, domain: Domain, text: str, asked: VersionsAsked, *, readers: ParserPool, at: datetime
) -> UrlFacts:
    """All about one URL of a domain. Raises BadInput for what is none."""
    url = scope_now(domain).home(url_of(text))
    known = await report.explain(db, domain, url, at=at, defaults=defaults_in_use())
    page = known.page
    if page is None:
        return UrlFacts(url=url, domain=domain, known=known, untracked=why_untracked(url, domain, known))
    versions = await report.versions_of(db, domain, url, most=VERSIONS + 1, before=asked.older_than)
    shown = versions[:VERSIONS]
    is_dated = page.version > 0 and page.state is State.KNOWN and page.last_good_at is not None
    look = next((look for look in known.visits if look.rendering), None)
    return UrlFacts(
        url=url,
        domain=domain,
        known=known,
        untracked="",
        next=why_next(domain, known, page),
        belief=why_belief(page, known.prior_source),
        refused=why_refused(url, domain, known.robots) if page.state is not State.REFUSED else "",
        signals=shown_signals(page, known) if page.version else "",
        scripts=RENDERING_WORDS.get(look.rendering, look.rendering) if look is not None else "",
        waits=await page_wait(db, domain, settings(), at=known.at),
        fresh=chance_now(page, known) if is_dated and page.freshness else page.freshness,
        worth=worth_now(domain, known, page),
        versions=tuple(shown),
        more=shown[-1].number if len(versions) > VERSIONS else 0,
        content=await report.version_of(db, domain, url, number=asked.after or None),
        compared=await _compared(db, domain, url, asked, readers=readers),
    )


async def _compared(
    db: Database, domain: Domain, url: Url, asked: VersionsAsked, *, readers: ParserPool
) -> ComparedVersions | None:
    """The wanted versions and their difference; None where there are no two."""
    after = await report.version_of(db, domain, url, number=asked.after or None)
    if after is None or after.version.number < 2:
        return None
    before = await report.version_of(db, domain, url, number=asked.before or after.version.number - 1)
    if before is None:
        return None
    if before.version.number > after.version.number:
        before, after = after, before
    if not (before.version.is_kept and after.version.is_kept):  # thinned out: there is nothing to compare
        return None
    diff = await diff_versions(db, domain, before, after, readers=readers, context=CONTEXT)
    return ComparedVersions(before=before.version, after=after.version, diff=diff)
