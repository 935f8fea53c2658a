"""Requested revisits: make pages due now, or record hints that they may have changed."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from crawler.app.action_log import describe_action, recorded
from crawler.app.database import AppDatabase
from crawler.app.registration import get_domain, make_scope, parse_prefix, parse_typed_url, require_after_last_visit
from crawler.app.status import Wait, find_wait
from crawler.core.domain import Domain
from crawler.core.freshness.signals import SOURCE_NAME, ChangeSignal
from crawler.core.http.urls import Authority, Url, get_authority, get_path_and_query
from crawler.errors import BadInput, StackFailed
from crawler.format.values import format_count
from crawler.runtime.stack import find_running_stack
from crawler.settings import Settings
from crawler.store import domains, report

MAX_HINTS = 10_000  # URLs per call
NOT_REGISTERED = "not_registered"


@dataclass(frozen=True, slots=True)
class HintResult:
    """The numbers of recorded hints by domain, and of rejected hints by reason."""

    accepted: dict[str, int]
    rejected: dict[str, int]


def require_source(source: str) -> None:
    """Raise BadInput for an invalid name of a source of hints."""
    if not SOURCE_NAME.fullmatch(source):
        raise BadInput(
            f"{source!r} is not a valid source name: use a lowercase letter, then up to 31 of a-z, 0-9, dot, _ and -"
        )


async def record_hints(db: AppDatabase, urls: Iterable[Url], *, source: str, at: datetime) -> HintResult:
    """Record a hint for each URL in the scope of its domain. Raises BadInput, also if too many hints wait already."""
    require_source(source)
    by_authority: defaultdict[Authority, list[Url]] = defaultdict(list)
    for url in urls:
        by_authority[get_authority(url)].append(url)
    accepted: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    for authority, urls_of_authority in by_authority.items():
        domain = await domains.find_domain(db, authority)
        if domain is None:
            rejected[NOT_REGISTERED] += len(urls_of_authority)
            continue
        scope, allowed = make_scope(domain, domain.settings), list[Url]()
        for url in dict.fromkeys(map(scope.to_domain_url, urls_of_authority)):
            if (reason := scope.find_exclusion(url, 1)) is None:
                allowed.append(url)
            else:
                rejected[reason.value] += 1
        if allowed:
            signals = [ChangeSignal(url=url, source=source, at=at) for url in allowed]
            await domains.add_signals(db, domain, signals, at=at)
            accepted[domain.authority] += len(allowed)
    return HintResult(accepted=dict(accepted), rejected=dict(rejected))


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """The result of a refresh. url, pages: a page, or a URL prefix with * at its end, and how many pages that is.

    wait: why the pages are not fetched now; None if a worker fetches them immediately.
    run_url: the address of the run of the local stack that fetches them, or empty.
    """

    domain: Domain
    url: str
    pages: int
    wait: Wait | None = None
    run_url: str = ""

    @property
    def command(self) -> str:
        """Return the command that fetches the requested pages."""
        return f"recrawl crawl {self.domain.authority if self.url.endswith('*') else self.url}"

    @property
    def subject(self) -> str:
        """Return what is due, with its verb."""
        if not self.url.endswith("*"):
            return f"{self.url} is"
        verb = "is" if self.pages == 1 else "are"
        return f"{format_count(self.pages, 'page')} whose URL starts with {self.url[:-1]} {verb}"


@recorded("recrawl")
async def request_refresh(db: AppDatabase, name: str, *, path: str = "", at: datetime | None = None) -> RefreshResult:
    """Make a page of a domain due; with * at the end of its URL, all pages whose URL starts with it.

    name: a domain, for all its pages, or a URL with a path.  path: a path or URL instead of that of `name`; empty for
    none.  at: None for now.  Raises BadInput, also for a URL that is not a page.
    """
    domain = await get_domain(db, name)
    await require_after_last_visit(db, [domain], at)
    path = (path or ("*" if get_path_and_query(parse_typed_url(name)) == "/" else name)).strip()
    url, is_prefix = parse_prefix(domain, path.removesuffix("*")), path.endswith("*")
    pages, instant = await report.count_pages(db, domain, url, is_prefix=is_prefix), at or datetime.now(UTC)
    if is_prefix:
        await domains.request_refresh(db, domain, prefix=url, at=instant)
    elif pages:
        await domains.add_seeds(db, domain, [url], at=instant)
    else:
        prefix_hint = "for all pages whose URL starts with it, add *"
        raise BadInput(f"{url} is not a page that may be fetched: recrawl explain {url} says why; {prefix_hint}")
    wait = await find_wait(db, domain, at=instant)
    describe_action(object=f"{url}*" if is_prefix else url, new=format_count(pages, "page"))
    return RefreshResult(domain, f"{url}*" if is_prefix else url, pages, wait)


@recorded("recrawl")
async def recrawl(db: AppDatabase, name: str, *, path: str = "") -> RefreshResult:
    """Make pages due as `request_refresh` does, and start a run that fetches them if a local stack runs."""
    result = await request_refresh(db, name, path=path)
    return replace(result, run_url=await try_to_recrawl(db, result.domain, result.url))


def start_recrawl(settings: Settings, domain: Domain, path: str) -> str | None:
    """Start a run of the local stack that fetches what is due; return its URL, or None without a stack.

    path: a page of the domain, or a URL prefix with * at its end, to make due first; empty for what is due already.
    Blocks until the Prefect server responds. Raises StackFailed if it does not respond or has no such deployment.
    """
    stack = find_running_stack(settings)
    if stack is None:
        return None
    from crawler.runtime.prefect import runs  # noqa: PLC0415  prefect takes a second to import

    deployment, parameters = ("recrawl/recrawl", {"path": path}) if path else ("crawl/crawl", {})
    return runs.start_run(stack, deployment, {"domain": domain.authority, **parameters}).url


async def try_to_recrawl(db: AppDatabase, domain: Domain, path: str) -> str:
    """Start a run as `start_recrawl` does; return its URL, or "" if no stack runs or it does not respond."""
    try:
        return await asyncio.to_thread(start_recrawl, db.settings, domain, path) or ""
    except StackFailed:
        return ""
