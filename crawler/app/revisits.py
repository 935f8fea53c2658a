"""Revisits before their time: refresh pages, which makes them due now, or leave hints that they have changed."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.app.database import Database
from crawler.app.registration import domain_named, require_not_before_last_visit, scope_of, url_of, url_prefix
from crawler.app.status import Wait, why_not_now
from crawler.core.domain import Domain
from crawler.core.freshness.signals import SOURCE_NAME, ChangeSignal
from crawler.core.http.urls import Authority, Url, authority_of, path_and_query
from crawler.errors import BadInput
from crawler.runtime.stack import running_stack
from crawler.settings import Settings
from crawler.store import domains, report

MAX_HINTS = 10_000  # URLs at a time
NOT_REGISTERED = "not_registered"


@dataclass(frozen=True, slots=True)
class TakenHints:
    """What became of hints. taken: how many by domain.  refused: how many by reason."""

    taken: dict[str, int]
    refused: dict[str, int]


def require_source(source: str) -> None:
    """Raise BadInput for what cannot name a source of hints."""
    if not SOURCE_NAME.fullmatch(source):
        raise BadInput(f"{source!r} is no name of a source: a small letter, then up to 31 of a-z, 0-9, dot, _ and -")


async def leave_hints(db: Database, urls: Iterable[Url], *, source: str, at: datetime) -> TakenHints:
    """Leave a hint for each URL that its domain's scope allows. Raises BadInput for what cannot name a source."""
    require_source(source)
    by_authority: defaultdict[Authority, list[Url]] = defaultdict(list)
    for url in urls:
        by_authority[authority_of(url)].append(url)
    taken: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for authority, meant in by_authority.items():
        domain = await domains.find(db, authority)
        if domain is None:
            refused[NOT_REGISTERED] += len(meant)
            continue
        scope, inside = scope_of(domain, domain.settings), list[Url]()
        for url in dict.fromkeys(map(scope.home, meant)):
            if (reason := scope.refusal(url, 1)) is None:
                inside.append(url)
            else:
                refused[reason.value] += 1
        if inside:
            signals = [ChangeSignal(url=url, source=source, at=at) for url in inside]
            await domains.signal(db, domain, signals, at=at)
            taken[domain.authority] += len(inside)
    return TakenHints(taken=dict(taken), refused=dict(refused))


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """A request to fetch all pages under a prefix. pages: how many there are.  wait: why they are not fetched now."""

    domain: Domain
    prefix: Url
    pages: int
    wait: Wait | None = None

    @property
    def command(self) -> str:
        """The command that fetches what was requested: one page alone where it is one."""
        is_page = self.pages == 1 and not self.prefix.endswith("/")
        return f"recrawl crawl {self.prefix if is_page else self.domain.authority}"


async def refresh(db: Database, name: str, *, prefix: str = "", at: datetime | None = None) -> RefreshResult:
    """Make the pages of a domain due whose URLs begin with a prefix.

    name: a domain, or the URL of one of its pages, which stands for that page alone.  prefix: a path or a URL; empty
    for what the name says.  at: None for now.  Raises BadInput.
    """
    domain = await domain_named(db, name)
    await require_not_before_last_visit(db, [domain], at)
    url = url_of(name)
    wanted = url_prefix(domain, prefix or ("" if path_and_query(url) == "/" else url))
    pages = await report.pages_beneath(db, domain, wanted)
    instant = at or datetime.now(UTC)
    await domains.refresh(db, domain, prefix=wanted, at=instant)
    return RefreshResult(domain, wanted, pages, await why_not_now(db, domain, at=instant))


def start_recrawl(settings: Settings, domain: Domain, prefix: Url) -> str | None:
    """Let the running stack fetch what is due under a prefix; return where to watch it, or None without a stack.

    Blocks while the Prefect server answers. Raises StackFailed where it does not.
    """
    stack = running_stack(settings)
    if stack is None:
        return None
    from crawler.runtime.prefect import runs  # noqa: PLC0415  prefect takes a second to import

    return runs.start_run(stack, "recrawl/recrawl", {"domain": domain.authority, "prefix": prefix}).url
