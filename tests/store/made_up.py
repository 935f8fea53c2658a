"""A synthetic domain of a few numbered pages, visited without a web server."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from crawler.core.domain import Domain, Lease
from crawler.core.freshness.visit_terms import CrawlDefaults
from crawler.core.http.response import Fetched, NotModified, Response, Validators
from crawler.core.http.robots import ALLOW_ALL
from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.core.visit.decide import decide_visit
from crawler.core.visit.visit import DomainKnowledge, Target, Visit
from crawler.store import claim, frontier, record
from crawler.store.database import Database

TERM = timedelta(minutes=5)


def url(domain: Domain, n: int) -> Url:
    """Return the URL of page n; page 0 is the root."""
    return Url(f"{domain.root}{n}") if n else domain.root


def key(domain: Domain, n: int) -> PageKey:
    return compute_page_key(url(domain, n))


def known(domain: Domain) -> DomainKnowledge:
    return DomainKnowledge(
        scope=domain.build_scope(max_depth=1000),
        rules=ALLOW_ALL,
        agent="recrawl",
    )


USUAL = CrawlDefaults(
    shadow_price=0.25,
    min_interval=timedelta(minutes=10),
    max_interval=timedelta(days=180),
    discovery_share=0.3,
    refresh_share=0.3,
    fills_budgets=True,
)


def html(domain: Domain, links: Iterable[int], *, words: str = "some words to read") -> Fetched:
    body = f"<title>page</title><p>{words}" + "".join(f'<a href="{url(domain, n)}">{n}</a> ' for n in links)
    return status(200, body.encode())


def status(code: int, body: bytes = b"", *, location: Url | None = None, retry_after: str | None = None) -> Fetched:
    return Fetched(
        status=code,
        body=body,
        received_bytes=len(body),
        elapsed=timedelta(milliseconds=5),
        content_type="text/html; charset=utf-8",
        validators=Validators(etag='"v"') if code == 200 else Validators(),
        location=location,
        retry_after=retry_after,
    )


NOT_MODIFIED = NotModified(elapsed=timedelta(milliseconds=1))


async def take(db: Database, at: datetime, *, term: timedelta = TERM) -> Lease:
    """Claim the domain that is due and drain its inbox."""
    lease = await claim.claim(db, at=at, holder="test", term=term)
    assert lease is not None
    while await record.drain_inbox(db, lease, at=at):
        pass
    return lease


async def targets(
    db: Database, lease: Lease, at: datetime, *, most: int = 100, without: Sequence[PageKey] = ()
) -> list[Target]:
    return await frontier.select_targets(db, lease, max_targets=most, at=at, dispatched=without, defaults=USUAL)


def look(target: Target, answer: Response, at: datetime, domain: Domain) -> Visit:
    return decide_visit(target, answer, now=at, knowledge=known(domain))


async def crawl(db: Database, lease: Lease, links: dict[int, list[int]], at: datetime, *, most: int = 10_000) -> int:
    """Visit all selected pages until there are none, and return the number of visits."""
    numbers = {key(lease.domain, n): n for n in links}
    visits = 0
    while visits < most and (batch := await targets(db, lease, at, most=min(20, most - visits))):
        done = []
        for target in batch:
            at += timedelta(milliseconds=1)
            n = numbers.get(target.key)
            own = "".join(chr(97 + int(digit)) for digit in str(n or 0))  # or its group would be deferred
            answer = status(404) if n is None else html(lease.domain, links[n], words=f"what {own} has to say")
            done.append(look(target, answer, at, lease.domain))
        await record.record_visits(db, lease, record.Batch(done, max_pages=10**6))
        visits += len(done)
    return visits


async def economy_total(db: Database, domain: Domain) -> tuple[int, int]:
    """Return the actual and the expected total of cash, computed exactly in SQL."""
    async with db.transaction() as connection:
        cursor = await connection.execute(
            """SELECT s.virtual_page_cash + s.dormant
                      + coalesce((SELECT sum(c.net) FROM cash c WHERE c.domain_id = s.domain_id), 0)
                      + (SELECT sum(p.pages::numeric * p.dividend) FROM pool p WHERE p.domain_id = s.domain_id),
                      s.total_cash
                 FROM domain_state s WHERE s.domain_id = %s""",
            (domain.id,),
        )
        row = await cursor.fetchone()
        assert row is not None
        return int(row[0]), int(row[1])


async def states(db: Database, domain: Domain) -> dict[str, str]:
    """Return the state of every page, by path."""
    async with db.transaction() as connection:
        cursor = await connection.execute(
            "SELECT p.url, f.state FROM page p JOIN frontier f USING (domain_id, key) WHERE domain_id = %s",
            (domain.id,),
        )
        return {row[0].removeprefix(domain.root): row[1] for row in await cursor.fetchall()}


def later(visit: Visit, **changes: object) -> Visit:
    """Return a copy of the visit with changes."""
    return replace(visit, **changes)
