"""Requested revisits: make pages due now, or record hints that they may have changed."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.app.database import AppDatabase
from crawler.app.registration import get_domain, make_scope, parse_prefix, parse_typed_url, require_after_last_visit
from crawler.app.status import Wait, find_wait
from crawler.core.domain import Domain
from crawler.core.freshness.signals import SOURCE_NAME, ChangeSignal
from crawler.core.http.urls import Authority, Url, get_authority, get_path_and_query
from crawler.errors import BadInput
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
    """Record a hint for each URL in the scope of its domain.

    Raises BadInput for an invalid source name, and for a domain in which too many hints wait.
    """
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
    """The result of a refresh. prefix, pages: the URL prefix, and the number of pages under it.

    wait: why the pages are not fetched now; None if a worker fetches them immediately.
    """

    domain: Domain
    prefix: Url
    pages: int
    wait: Wait | None = None

    @property
    def command(self) -> str:
        """Return the command that fetches the requested pages."""
        is_page = self.pages == 1 and not self.prefix.endswith("/")
        return f"recrawl crawl {self.prefix if is_page else self.domain.authority}"


async def request_refresh(db: AppDatabase, name: str, *, prefix: str = "", at: datetime | None = None) -> RefreshResult:
    """Make the pages of a domain under a URL prefix due.

    name: a domain, or the URL of one of its pages.  prefix: a path or URL; empty for all pages, or for the page that
    `name` gives.  at: None for now.  Raises BadInput.
    """
    domain = await get_domain(db, name)
    await require_after_last_visit(db, [domain], at)
    url = parse_typed_url(name)
    requested_prefix = parse_prefix(domain, prefix or ("" if get_path_and_query(url) == "/" else url))
    pages = await report.count_pages_under(db, domain, requested_prefix)
    instant = at or datetime.now(UTC)
    await domains.request_refresh(db, domain, prefix=requested_prefix, at=instant)
    return RefreshResult(domain, requested_prefix, pages, await find_wait(db, domain, at=instant))


def start_recrawl(settings: Settings, domain: Domain, prefix: Url) -> str | None:
    """Start a run of the local stack that fetches what is due under a prefix; return its URL, or None without a stack.

    Blocks until the Prefect server responds. Raises StackFailed if it does not respond or has no such deployment.
    """
    stack = find_running_stack(settings)
    if stack is None:
        return None
    from crawler.runtime.prefect import runs  # noqa: PLC0415  prefect takes a second to import

    return runs.start_run(stack, "recrawl/recrawl", {"domain": domain.authority, "prefix": prefix}).url
