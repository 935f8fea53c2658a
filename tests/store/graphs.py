"""Random histories of a synthetic domain with random failures, run against the real store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count
from typing import Any, assert_never

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.response import FailureReason, Fetched, Response, Unreached
from crawler.core.http.robots import parse_robots
from crawler.core.http.urls import Authority, PageKey, Url
from crawler.core.opic.order import Order, Ordering, age_cash, get_level, get_rank_range
from crawler.core.visit.decide import decide_visit
from crawler.core.visit.state import State
from crawler.core.visit.visit import DomainKnowledge, Target, Visit
from crawler.store import claim, domains, frontier, record
from crawler.store.database import Database
from tests.store import made_up
from tests.store.made_up import NOT_MODIFIED, USUAL, status, url

# All examples of a test share one database; each uses its own domains.
FEW = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
NAMES = count()
PAGES = 14  # /13 at most; robots.txt excludes /9*, and /8 is out of scope
RULES = parse_robots(b"User-agent: *\nDisallow: /9\n")
DEEPEST = 3
DAY = timedelta(days=1)

RANKED = """
    SELECT f.key, p.url, f.state, f.rank, f.depth, f.boosted, f.url_score, c.pool, c.net, c.net + q.dividend AS cash,
           c.clock
      FROM frontier f JOIN page p USING (domain_id, key)
      LEFT JOIN cash c USING (domain_id, key)
      LEFT JOIN pool q ON q.domain_id = c.domain_id AND q.pool = c.pool
     WHERE f.domain_id = %s
"""
# The total by the counts of the pools, and the total page by page.
COINS = """
    SELECT s.total_cash,
           s.virtual_page_cash + s.dormant + coalesce((SELECT sum(net) FROM cash WHERE domain_id = s.domain_id), 0)
                                 + (SELECT sum(pages::numeric * dividend) FROM pool WHERE domain_id = s.domain_id),
           s.virtual_page_cash + s.dormant + coalesce((SELECT sum(c.net::numeric + q.dividend) FROM cash c JOIN pool q
                                              USING (domain_id, pool) WHERE c.domain_id = s.domain_id), 0),
           (SELECT min(c.net + q.dividend) FROM cash c JOIN pool q USING (domain_id, pool)
             WHERE c.domain_id = s.domain_id),
           ARRAY(SELECT pages FROM pool WHERE domain_id = s.domain_id ORDER BY pool),
           ARRAY(SELECT (SELECT count(*) FROM cash c WHERE c.domain_id = s.domain_id AND c.pool = n)
                   FROM generate_series(0, 3) n)
      FROM domain_state s WHERE s.domain_id = %s
"""


class Kind(StrEnum):
    """The outcome of a visit."""

    GOOD = "good"
    SAME = "unchanged"
    CANONICAL = "canonical"
    FAILED = "failed"
    SILENT = "silent"
    REFUSED = "excluded"
    MISSING = "missing"
    GONE = "gone"
    MOVED = "moved"
    MOVED_AWAY = "moved away"
    POINTS = "points"  # a temporary redirect


SHORT: Mapping[Kind, Response] = {  # responses that are the same for every page
    Kind.FAILED: status(500),
    Kind.SILENT: Unreached(FailureReason.DEADLINE, timedelta(seconds=1)),
    Kind.REFUSED: Unreached(FailureReason.ROBOTS, timedelta(0)),
    Kind.MISSING: status(404),
    Kind.GONE: status(410),
    Kind.MOVED_AWAY: status(308, location=Url("http://else.test/")),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The response of a page. to: the page that it links or redirects to.  elsewhere: links to other domains."""

    kind: Kind
    links: tuple[int, ...] = ()
    to: int = 0
    elsewhere: int = 0


class Turn(StrEnum):
    """The event at the start of a step."""

    GO_ON = "go on"
    REWISH = "rewish"  # the user changes the discovery order during the lease
    RELEASE = "take again"  # the lease expires, and another worker takes the domain


@dataclass(frozen=True, slots=True)
class Step:
    """A day of a domain: an event concerning its lease or settings, then visits of the first pages of its frontier."""

    turn: Turn
    ordering: Ordering
    outcomes: tuple[Outcome, ...]


numbers = st.integers(0, PAGES - 1)
# Half of all visits are successful, or there would soon be no pages left to visit.
kinds = st.one_of(st.just(Kind.GOOD), st.sampled_from(Kind))


def build_settings(**values: Any) -> DomainSettings:
    return DomainSettings(**values)


outcomes = st.builds(
    Outcome,
    kind=kinds,
    links=st.lists(numbers, max_size=5).map(tuple),
    to=numbers,
    elsewhere=st.integers(0, 3),
)
orderings = st.builds(
    Ordering,
    order=st.sampled_from(Order),
    boost=st.sets(st.sampled_from(["/1", "/2", "/5$"])).map(lambda chosen: tuple(sorted(chosen))),
    boost_factor=st.sampled_from([1.0, 4.0]),
    discovery_weight=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    revisit_weight=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)
turns = st.one_of(st.just(Turn.GO_ON), st.sampled_from(Turn))
visits = st.lists(outcomes, min_size=1, max_size=6).map(tuple)
steps = st.builds(Step, turn=turns, ordering=orderings, outcomes=visits)
histories = st.lists(steps, min_size=3, max_size=6)
domain_settings = st.builds(
    build_settings,
    ordering=orderings,
    external_link_weight=st.sampled_from([0.0, 0.5, 1.0]),
    internal_link_weight=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    virtual_page_share=st.sampled_from([0.0, 0.15, 0.6, 1.0]),
    importance_window=st.sampled_from([0.5, 8.0, 24.0]),
    max_pages=st.sampled_from([4, 8, 100]),
    max_depth=st.just(DEEPEST),
    exclude=st.just(("/8",)),
)


@dataclass(slots=True)
class Life:
    """The state of a domain while its history runs."""

    db: Database
    domain: Domain
    lease: Lease
    at: datetime
    lost: list[Lease] = field(default_factory=list)

    @property
    def is_in_order(self) -> bool:
        """Return whether the lease holder has the current settings."""
        return self.lease.domain.settings.ordering == self.domain.settings.ordering


def named() -> str:
    return f"site{next(NAMES)}.test"


async def born(db: Database, name: str, wished: DomainSettings, at: datetime) -> Life:
    domain = await domains.register(db, Authority(name), scheme="http", domain_settings=wished, at=at)
    lease = await taken(db, domain, at)
    await drained(db, lease, at)
    return Life(db, domain, lease, at)


async def taken(db: Database, domain: Domain, at: datetime) -> Lease:
    lease = await claim.claim(db, at=at, holder="test", term=made_up.TERM, only=[domain])
    assert lease is not None
    return lease


async def drained(db: Database, lease: Lease, at: datetime) -> None:
    while await record.drain_inbox(db, lease, at=at):
        pass


async def begin(life: Life, step: Step) -> None:
    """Run the event of a step and start a new day on which every page is due."""
    life.at += DAY
    match step.turn:
        case Turn.GO_ON:
            pass
        case Turn.REWISH:
            wished = replace(life.domain.settings, ordering=step.ordering)
            life.domain = await domains.change_settings(life.db, life.domain, wished, at=life.at)
        case Turn.RELEASE:
            life.lost.append(life.lease)
            await run_out(life)
            life.lease = await taken(life.db, life.domain, life.at)
        case _:
            assert_never(step.turn)
    await drained(life.db, life.lease, life.at)
    async with life.db.transaction() as connection:
        await connection.execute(
            "UPDATE frontier SET due_at = %s, request_reason = 1 WHERE domain_id = %s AND state <> 'unfetched'",
            (life.at, life.domain.id),
        )


async def run_out(life: Life) -> None:
    async with life.db.transaction() as connection:
        await connection.execute(
            "UPDATE domain_state SET leased_until = clock_timestamp() - interval '1 s' WHERE domain_id = %s",
            (life.domain.id,),
        )


async def handed_out(life: Life, most: int, *, without: Sequence[PageKey] = ()) -> list[Target]:
    return await made_up.targets(life.db, life.lease, life.at, most=most, without=without)


def looked(life: Life, targets: Sequence[Target], outcomes: Sequence[Outcome]) -> list[Visit]:
    """Return visits of the targets, a moment apart."""
    known = known_of(life.lease.domain)
    done = []
    for target, outcome in zip(targets, outcomes, strict=False):
        life.at += timedelta(milliseconds=1)
        done.append(decide_visit(target, answer_of(life.domain, target, outcome), now=life.at, knowledge=known))
    return done


def known_of(domain: Domain) -> DomainKnowledge:
    return replace(made_up.known(domain), scope=domain.build_scope(max_depth=DEEPEST), rules=RULES)


def answer_of(domain: Domain, target: Target, outcome: Outcome) -> Response:
    onward = url(domain, outcome.to)
    match outcome.kind:
        case Kind.SAME if target.version:
            return NOT_MODIFIED
        case Kind.GOOD | Kind.SAME:
            return page(domain, outcome)
        case Kind.CANONICAL:
            return page(domain, outcome, canonical=onward)
        case Kind.MOVED:
            return status(301, location=onward)
        case Kind.POINTS:
            return status(302, location=onward)
        case _:
            return SHORT[outcome.kind]


def page(domain: Domain, outcome: Outcome, *, canonical: Url | None = None) -> Fetched:
    head = f'<link rel="canonical" href="{canonical}">' if canonical else ""
    ours = [url(domain, n) for n in outcome.links]
    theirs = [f"http://else{n}.test/" for n in range(outcome.elsewhere)]
    links = "".join(f'<a href="{href}">{href}</a> ' for href in (*ours, *theirs))
    return status(200, f"<title>t</title>{head}<p>words and words</p>{links}".encode())


async def recorded(life: Life, done: Sequence[Visit], *, again: bool = False) -> None:
    """Record the visits and check the invariants."""
    if done:
        most = life.domain.settings.max_pages
        assert most is not None
        await record.record_visits(life.db, life.lease, record.Batch(done, max_pages=most), retrying=again)
    await in_order(life)


async def in_order(life: Life) -> None:
    """Check that cash is conserved and never negative, and that ranks equal newly computed ones."""
    coins, by_pool, by_page, least, counted, there = (await rows(life, COINS))[0]
    assert (by_pool, by_page) == (coins, coins)
    assert counted == there
    assert least is None or least >= 0
    if life.is_in_order:
        for row in await ranked(life):
            assert stands(row) == should_stand(row, life.domain.settings.ordering), row["url"]


async def ranked(life: Life) -> list[Mapping[str, Any]]:
    names = ("key", "url", "state", "rank", "depth", "boosted", "url_score", "pool", "net", "cash", "clock")
    return [dict(zip(names, row, strict=True)) for row in await rows(life, RANKED)]


async def rows(life: Life, statement: str) -> list[tuple[Any, ...]]:
    async with life.db.transaction() as connection:
        return await (await connection.execute(statement.encode(), (life.domain.id,))).fetchall()


def stands(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["boosted"], row["url_score"], row["pool"], row["rank"]


def should_stand(row: Mapping[str, Any], ordering: Ordering) -> tuple[object, ...]:
    address = Url(row["url"])
    boosted, score = ordering.is_boosted(address), ordering.score_url(address)
    is_new = row["state"] == State.UNFETCHED
    pool = None if row["pool"] is None else ordering.choose_pool(is_fetched=not is_new, is_boosted=boosted).value
    rank = row["rank"] if is_new else 0
    if is_new and ordering.order is Order.BREADTH:
        least, first = get_rank_range(get_level(row["depth"]))
        rank = min(max(rank, least), first)
    elif is_new and ordering.order is not Order.DEPTH:
        rank = ordering.compute_rank(age_cash(row["net"], clock=row["clock"]), url_score=score)
    return boosted, score, pool, rank


async def discovery(life: Life, most: int) -> list[Target]:
    """Return the first unfetched pages in the order of selection."""
    defaults = replace(USUAL, discovery_share=1.0, refresh_share=0.0)
    return await frontier.preview_targets(
        life.db, life.lease.domain, max_targets=most, at=life.domain.registered_at, defaults=defaults
    )
