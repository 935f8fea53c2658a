"""A preview of a crawl: what it would fetch now, and at what cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from crawler.app.database import AppDatabase
from crawler.app.registration import find_domains, make_scope, parse_typed_url, require_after_last_visit
from crawler.app.status import Wait, WaitReason, find_wait
from crawler.core.domain import Domain, DomainStatus
from crawler.core.http.urls import Authority, Url, get_authority, get_path_and_query
from crawler.core.visit.state import State
from crawler.core.visit.visit import Target
from crawler.plugins import add_plugin_defaults
from crawler.store import domains, frontier, report
from crawler.store.report import Backlog

MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class CrawlPreview:
    """The start of a crawl of one domain.

    first: the first pages to be fetched, up to MAX_SHOWN.  wait: why nothing would be fetched now; None if it would.
    delay: the time between two requests.  requested: pages that were requested by their URLs, which are fetched first.
    """

    domain: Domain
    status: DomainStatus
    backlog: Backlog
    first: tuple[Target, ...]
    max_pages: int | None
    wait: Wait | None
    delay: timedelta
    requested: tuple[Url, ...] = ()

    @property
    def requested_not_due(self) -> tuple[Url, ...]:
        """Return the requested pages that are not due; empty if not all due pages are listed."""
        is_complete = self.backlog.fetches <= len(self.first)
        return tuple(set(self.requested) - {target.url for target in self.first}) if is_complete else ()

    @property
    def requests(self) -> int:
        """Return the number of requests for pages, without robots.txt and pages found during the crawl."""
        allowed = [limit for limit in (self.max_pages, self.status.budget_left) if limit is not None]
        due = max(self.backlog.fetches, len(self.first))
        return max(min([due + len(self.requested_not_due), *allowed]), 0)

    @property
    def max_bytes(self) -> float:
        """Return the bytes to receive if all pages are sent in full, and unfetched pages have the mean size."""
        workload = self.backlog
        total_bytes = workload.fetched_bytes + workload.unfetched * workload.mean_bytes
        return total_bytes * self.requests / max(workload.fetches, 1)

    @property
    def min_time(self) -> timedelta:
        """Return the sum of the delays between requests; a longer delay in robots.txt is not considered."""
        return self.requests * self.delay


class CrawlPreviews(NamedTuple):
    """The previews of the domains, and the names that are not registered."""

    domains: Sequence[CrawlPreview]
    unregistered: Sequence[Authority]


async def preview_crawl(
    db: AppDatabase, names: Sequence[str] = (), *, max_pages: int | None = None, at: datetime | None = None
) -> CrawlPreviews:
    """Preview a crawl of these names, or of all domains. Raises BadInput, also for a time before a last visit."""
    authorities = dict.fromkeys(get_authority(parse_typed_url(name)) for name in names)
    found = {authority: await domains.find_domain(db, authority) for authority in authorities}
    registered = {domain.id: domain for domain in found.values() if domain is not None}
    selected = list(registered.values()) if names else await find_domains(db)
    if at is not None or names:
        await require_after_last_visit(db, selected, at)
    instant = at or datetime.now(UTC)
    previews = [await _preview_domain(db, each, names, max_pages=max_pages, at=instant) for each in selected]
    return CrawlPreviews(previews, [authority for authority, domain in found.items() if domain is None])


async def _preview_domain(
    db: AppDatabase, domain: Domain, names: Sequence[str], *, max_pages: int | None, at: datetime
) -> CrawlPreview:
    defaults = add_plugin_defaults(db.settings.defaults, db.settings.plugins)
    count = min(max_pages or MAX_SHOWN, MAX_SHOWN)
    first = await frontier.preview_targets(db, domain, max_targets=count, at=at, defaults=defaults)
    # This crawl needs no worker, and it ignores the pace if it names the domain.
    wait = await find_wait(db, domain, at=at)
    is_blocked = wait is not None and (wait.reason.is_obstacle or (wait.reason is WaitReason.PACED and not names))
    return CrawlPreview(
        domain=domain,
        status=await domains.read_status(db, domain, at=at),
        backlog=await report.read_backlog(db, domain, at=at),
        first=tuple(first),
        max_pages=max_pages,
        wait=wait if is_blocked else None,
        delay=db.settings.choose_delay(domain.settings, is_own=domain.is_own_server),
        requested=tuple(dict.fromkeys(url for name in names if (url := _parse_page(name, domain)))),
    )


def _parse_page(text: str, domain: Domain) -> Url | None:
    """Return the URL as a page of the domain; None for a name without a path or another domain's URL."""
    url = parse_typed_url(text)
    scope = make_scope(domain, domain.settings)
    is_page = get_path_and_query(url) != "/" and get_authority(url) in {domain.authority, *domain.aliases}
    return scope.to_domain_url(url) if is_page else None
