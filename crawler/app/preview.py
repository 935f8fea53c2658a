"""What a crawl would fetch now, and what that would cost, without touching anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from crawler.app.database import Database
from crawler.app.registration import find_domains, require_not_before_last_visit, scope_of, url_of
from crawler.app.status import Wait, WaitReason, why_not_now
from crawler.core.domain import Domain, DomainStatus
from crawler.core.http.urls import Authority, Url, authority_of, path_and_query
from crawler.core.visit.visit import State, Target
from crawler.plugins import defaults_with
from crawler.store import domains, hand_out, report
from crawler.store.report import Workload

SHOWN = 20


@dataclass(frozen=True, slots=True)
class CrawlPreview:
    """What a crawl of one domain would begin with. first: the best pages, in their order, due or not.

    delay: between two requests.  named: pages that are requested by their URLs, and so are fetched first, due or not.
    """

    domain: Domain
    status: DomainStatus
    load: Workload
    first: tuple[Target, ...]
    most: int | None
    wait: Wait | None
    delay: timedelta
    named: tuple[Url, ...] = ()

    @property
    def not_due(self) -> tuple[Url, ...]:
        """Pages that are named and would not be looked at otherwise, as far as all that is due is listed."""
        is_whole = self.load.looks <= len(self.first)
        return tuple(set(self.named) - {target.url for target in self.first}) if is_whole else ()

    @property
    def requests(self) -> int:
        """Of pages; robots.txt and what is found on the way come on top."""
        allowed = [limit for limit in (self.most, self.status.budget_left) if limit is not None]
        due = max(self.load.looks, len(self.first))
        return max(min([due + len(self.not_due), *allowed]), 0)

    @property
    def most_bytes(self) -> float:
        """If every page were sent in full, each as large as it was, and new ones as large as the others."""
        load = self.load
        everything = load.known_bytes + load.new * load.mean_bytes
        return everything * self.requests / max(load.looks, 1)

    @property
    def least_time(self) -> timedelta:
        """What the delay alone takes; a longer one in robots.txt counts in addition."""
        return self.requests * self.delay


class CrawlPreviews(NamedTuple):
    """What a crawl would begin with, domain by domain, and which names are not registered."""

    domains: Sequence[CrawlPreview]
    unregistered: Sequence[Authority]


async def preview_crawl(
    db: Database, names: Sequence[str] = (), *, max_pages: int | None = None, at: datetime | None = None
) -> CrawlPreviews:
    """Return what a crawl of these names, or of all domains, would begin with. Raises BadInput as the crawl does."""
    known: dict[int, Domain] = {}
    unknown: dict[Authority, None] = {}
    for authority in (authority_of(url_of(name)) for name in names):
        domain = await domains.find(db, authority)
        if domain is None:
            unknown[authority] = None
        else:
            known[domain.id] = domain
    wanted = list(known.values()) if names else await find_domains(db)
    if at is not None or names:
        await require_not_before_last_visit(db, wanted, at)
    instant = at or datetime.now(UTC)
    found = [await _preview(db, each, names, max_pages=max_pages, at=instant) for each in wanted]
    return CrawlPreviews(found, list(unknown))


async def _preview(
    db: Database, domain: Domain, names: Sequence[str], *, max_pages: int | None, at: datetime
) -> CrawlPreview:
    defaults = defaults_with(db.settings.defaults, db.settings.plugins)
    first = await hand_out.preview(db, domain, most=min(max_pages or SHOWN, SHOWN), at=at, defaults=defaults)
    # What would keep this crawl from fetching: it needs no worker, and where it names the domain, no pace.
    wait = await why_not_now(db, domain, at=at)
    is_held = wait is not None and (wait.reason.is_obstacle or (wait.reason is WaitReason.PACED and not names))
    return CrawlPreview(
        domain=domain,
        status=await domains.status_of(db, domain, at=at),
        load=await report.workload(db, domain, at=at),
        first=tuple(first),
        most=max_pages,
        wait=wait if is_held else None,
        delay=db.settings.delay_of(domain.settings, is_own=domain.is_own),
        named=tuple(dict.fromkeys(url for name in names if (url := _page_in(name, domain)))),
    )


def _page_in(text: str, domain: Domain) -> Url | None:
    """Return the page of a domain that a URL names; None for a bare name, or another domain's."""
    url = url_of(text)
    scope = scope_of(domain, domain.settings)
    is_page = path_and_query(url) != "/" and authority_of(url) in {domain.authority, *domain.aliases}
    return scope.home(url) if is_page else None
