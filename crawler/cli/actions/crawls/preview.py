"""recrawl crawl --dry-run: what would be fetched now and what that would cost, without touching anything."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app import Wait, WaitReason, why_not_now
from crawler.app.registration import require_not_before_last_visit, scope_of, url_of
from crawler.app.status import format_wait
from crawler.cli.actions.crawls.crawl import CrawlRequest, require_names
from crawler.cli.actions.domains.register import settings_of
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, say, show, show_facts
from crawler.cli.session import Interrupts, with_database
from crawler.core.domain import Domain, DomainStatus
from crawler.core.http import Url, authority_of, path_and_query
from crawler.core.visit import State, Target
from crawler.format.values import format_bytes, format_count, format_instant, format_span
from crawler.plugins import defaults_with, load
from crawler.settings import settings
from crawler.store import domains, hand_out, report
from crawler.store.database import Database
from crawler.store.report import Workload

SHOWN = 20
ON_TOP = ", one a page; robots.txt and second looks at what has changed come on top"


@dataclass(frozen=True, slots=True)
class CrawlPreview:
    """What a crawl of one domain would begin with. first: the best pages, in their order.

    named: pages that are named by their URLs, and so are looked at first, due or not.
    Some of them may not be due yet: what pays off is looked at when there is nothing better to do.
    """

    domain: Domain
    status: DomainStatus
    load: Workload
    first: tuple[Target, ...]
    most: int | None
    wait: Wait | None
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
        return self.requests * settings().delay_of(self.domain.settings, is_own=self.domain.is_own)


def preview(request: CrawlRequest, *, as_json: bool) -> int:
    require_names(request)
    load(settings().plugins)  # whatever is wrong with one is said before anything begins

    async def work(db: Database, _: Interrupts) -> tuple[list[CrawlPreview], list[str]]:
        at = request.at or datetime.now(UTC)
        known, unknown = await _sorted(db, request)
        if request.at is not None or request.names:
            await require_not_before_last_visit(db, known, request.at)
        return [await _plan(db, domain, request, at=at) for domain in known], unknown

    plans, unknown = with_database(work)
    at = request.at or datetime.now(UTC)
    if as_json:
        print_json({"at": at, "plans": [_document(plan) for plan in plans], "unregistered": unknown})
        return DONE
    for name in unknown:
        say(f"{name} is not registered: it would be, then /robots.txt and its root would be fetched")
    for plan in plans:
        _show(plan, at=at)
    if not plans and not unknown:
        say("No domain is registered: recrawl domains add URL")
    return DONE


async def _sorted(db: Database, request: CrawlRequest) -> tuple[list[Domain], list[str]]:
    """The domains that are registered, and the names that are not."""
    settings_of(request.patch)  # what could not be registered is an error here, too
    if not request.names:
        return [listed.domain for listed in await domains.every(db)], []
    known: dict[int, Domain] = {}
    unknown: list[str] = []
    for name in request.names:
        authority = authority_of(url_of(name))
        domain = await domains.find(db, authority)
        if domain is None:
            unknown.append(authority)
        else:
            known[domain.id] = domain
    return list(known.values()), list(dict.fromkeys(unknown))


async def _plan(db: Database, domain: Domain, request: CrawlRequest, *, at: datetime) -> CrawlPreview:
    first = await hand_out.preview(
        db,
        domain,
        most=min(request.pages or SHOWN, SHOWN),
        at=at,
        defaults=defaults_with(settings().defaults, settings().plugins),
    )
    return CrawlPreview(
        domain=domain,
        status=await domains.status_of(db, domain, at=at),
        load=await report.workload(db, domain, at=at),
        first=tuple(first),
        most=request.pages,
        wait=await _wait(db, domain, request, at=at),
        named=tuple(dict.fromkeys(url for text in request.names if (url := _page_in(text, domain)))),
    )


async def _wait(db: Database, domain: Domain, request: CrawlRequest, *, at: datetime) -> Wait | None:
    """Return what would keep this crawl from fetching: it needs no worker, and where it names the domain, no pace."""
    wait = await why_not_now(db, domain, settings(), at=at)
    is_held = wait is not None and (wait.reason.is_obstacle or (wait.reason is WaitReason.PACED and not request.names))
    return wait if is_held else None


def _page_in(text: str, domain: Domain) -> Url | None:
    """The page of a domain that its URL names; None for a bare name, or another domain's."""
    url = url_of(text)
    scope = scope_of(domain, domain.settings)
    is_page = path_and_query(url) != "/" and authority_of(url) in {domain.authority, *domain.aliases}
    return scope.home(url) if is_page else None


def _show(plan: CrawlPreview, *, at: datetime) -> None:
    load = plan.load
    not_now = format_wait(plan.wait, plan.domain, now=at)
    show_facts(
        [
            (
                plan.domain.authority,
                not_now or f"{format_count(plan.requests, 'request')}{ON_TOP if plan.requests else ''}",
            ),
            ("First", "\n".join(f"{url}, since you name it" for url in plan.named)),
            ("New pages", str(load.new)),
            (
                "Sitemaps",
                f"looked for at {format_count(load.unread_lists, 'usual place')}" if load.unread_lists else "",
            ),
            ("Due pages", f"{load.due} ({load.conditional} of them with validators)" if load.due else "0"),
            ("Bytes at most", format_bytes(plan.most_bytes)),
            ("Time at least", format_span(plan.least_time) if plan.least_time else ""),
            ("Inbox", f"{load.inbox_rows} not applied yet: format_count, not listed" if load.inbox_rows else ""),
            ("Next due", format_instant(plan.status.wake_at) if not plan.requests and plan.status.wake_at else ""),
        ]
    )
    if plan.first:
        say("")
        show(
            ["first", "why", "importance", "request"],
            [(target.url, _why(target), f"{target.importance:.2f}", _request(target)) for target in plan.first],
            right=["importance"],
        )


def _why(target: Target) -> str:
    if target.state is State.NEW:
        return "never fetched"
    return f"due, last seen {format_instant(target.last_good_at)}"


def _request(target: Target) -> str:
    return "conditional" if target.validators else "full"


def _document(plan: CrawlPreview) -> dict[str, object]:
    return {
        "domain": plan.domain.authority,
        "requests": plan.requests,
        "most_bytes": round(plan.most_bytes),
        "least_seconds": plan.least_time,
        "named": plan.named,
        "not_now": plan.wait,
        "next_due_at": plan.status.wake_at,
        "load": plan.load,
        "first": [
            {
                "url": target.url,
                "state": target.state,
                "importance": target.importance,
                "conditional": bool(target.validators),
                "last_good_at": target.last_good_at,
                "received_bytes": target.received_bytes,
            }
            for target in plan.first
        ],
    }
