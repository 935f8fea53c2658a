"""New domains begin with what plans have learned about their kind of site, before any revisit of them."""

from datetime import UTC, datetime, timedelta

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import PRIOR
from crawler.core.freshness.prior import ALL_KINDS
from crawler.core.http.urls import Authority
from crawler.format.explanation import format_change_rate
from crawler.planner.plan import plan_domains
from crawler.settings import Settings
from crawler.store import claim, domains, record, report
from crawler.store.database import Database
from crawler.store.report import PriorLevel, PriorSource
from tests.store.made_up import USUAL, html, look, targets, url
from tests.store.populated import Bulk, add, fetched

AT = datetime(2026, 3, 1, tzinfo=UTC)
SETTINGS = Settings(database_url=None)
START = "SELECT a, b FROM prior WHERE domain_id = %s AND no = 0"


async def registered(db: Database, name: str) -> Domain:
    return await domains.register(
        db, Authority(name), scheme="http", domain_settings=DomainSettings(budget_per_day=10_000), at=AT
    )


async def learnt(db: Database, name: str, *, per_day: float) -> Domain:
    """Return a domain of 100 pages that were visited often."""
    domain = await registered(db, name)
    await add(db, domain, Bulk(100, a=20.0, b=20.0 / per_day), at=AT)
    return domain


async def planned(db: Database) -> None:
    """Plan two slow government sites and two fast shops until their estimates are settled."""
    for name, per_day in {"a.gov": 0.01, "b.gov.uk": 0.02, "a.com": 0.5, "b.co.jp": 1.0}.items():
        await learnt(db, name, per_day=per_day)
    for hour in range(3):
        await plan_domains(db, at=AT + timedelta(hours=hour), settings=SETTINGS)


async def first_wait(db: Database, domain: Domain) -> timedelta:
    """Return how long after its first visit the root of a new domain is due again, without spreading."""
    at = AT + timedelta(days=1)
    lease = await claim.claim(db, at=at, holder="test", term=timedelta(minutes=5), only=[domain])
    assert lease is not None
    while await record.drain_inbox(db, lease, at=at):
        pass
    (target,) = await targets(db, lease, at)
    visit = look(target, html(domain, []), at, domain)
    await record.record_visits(db, lease, record.Batch([visit], max_pages=100))
    assert visit.due_at is not None
    return visit.due_at - at


async def test_a_new_domain_begins_with_the_prior_of_its_kind(db: Database) -> None:
    await planned(db)

    (gov,) = await fetched(db, START, (await registered(db, "new.gov")).id)
    (com,) = await fetched(db, START, (await registered(db, "new.com")).id)
    (elsewhere,) = await fetched(db, START, (await registered(db, "new.test")).id)
    kinds = await fetched(db, "SELECT kind, a, b, pages, domains FROM kind_prior ORDER BY kind")

    assert [(kind, pages, sites) for kind, _, _, pages, sites in kinds] == [
        (ALL_KINDS, 400, 4),
        ("com", 200, 2),
        ("gov", 200, 2),
    ]
    assert [(a, b) for _, a, b, _, _ in kinds] == [elsewhere, com, gov]
    per_day = [float(str(a)) / float(str(b)) for a, b in (gov, elsewhere, com)]
    assert per_day == sorted(per_day)
    assert per_day[0] < 0.5 * per_day[1]


async def test_the_first_revisit_of_a_new_domain_is_as_its_kind_changes(db: Database) -> None:
    await planned(db)

    gov, com, elsewhere = [
        await first_wait(db, await registered(db, name)) for name in ("new.gov", "new.com", "new.test")
    ]

    assert len({gov, com, elsewhere}) == 3


async def test_a_kind_that_nobody_has_seen_begins_as_all_do_and_nothing_known_with_the_usual_prior(
    db: Database,
) -> None:
    (alone,) = await fetched(db, START, (await registered(db, "first.gov")).id)
    await plan_domains(db, at=AT, settings=SETTINGS)  # of a domain without revisits
    wrong = await report.check_invariants(db)
    (second,) = await fetched(db, START, (await registered(db, "second.gov")).id)
    await planned(db)
    (strange,) = await fetched(db, START, (await registered(db, "new.museum")).id)
    (elsewhere,) = await fetched(db, START, (await registered(db, "new.test")).id)

    assert wrong == []
    assert alone == second == (PRIOR.a, PRIOR.b)
    assert strange == elsewhere != alone


async def test_a_domain_that_lives_in_a_time_of_its_own_teaches_no_others(db: Database) -> None:
    domain = await learnt(db, "a.gov", per_day=0.01)

    await plan_domains(db, at=AT, settings=SETTINGS, only=domain)

    assert await fetched(db, "SELECT kind FROM kind_prior") == []


async def belief_of(db: Database, domain: Domain, n: int) -> tuple[PriorSource | None, str]:
    """Return the source of a page's prior, and how it is explained to users."""
    known = await report.explain_url(db, domain, url(domain, n), at=AT + timedelta(days=1), defaults=USUAL)
    assert known.page is not None
    return known.prior_source, format_change_rate(known.page, known.prior_source).partition(", ")[2]


async def test_an_explanation_says_where_the_belief_comes_from_before_there_are_looks(db: Database) -> None:
    first = await registered(db, "first.gov")
    await add(db, first, Bulk(1), at=AT)
    nothing = await belief_of(db, first, 1)
    await planned(db)
    gov, elsewhere = await registered(db, "new.gov"), await registered(db, "new.test")
    for domain in (gov, elsewhere):
        await add(db, domain, Bulk(1), at=AT)
    await fetched(db, "INSERT INTO prior VALUES (%s, 1, '/news/*', 0.5, 10) RETURNING no", elsewhere.id)
    by_kind, by_all = await belief_of(db, gov, 1), await belief_of(db, elsewhere, 1)
    await add(db, elsewhere, Bulk(12, a=1.0, b=30.0, no=1, first=100), at=AT)
    await add(db, elsewhere, Bulk(1, no=1, first=200), at=AT)
    not_yet = await belief_of(db, elsewhere, 1)
    await plan_domains(db, at=AT + timedelta(hours=4), settings=SETTINGS)

    assert nothing == (PriorSource(PriorLevel.NOTHING, "gov", 0, 0), "the default for pages without data")
    assert by_kind == (PriorSource(PriorLevel.KIND, "gov", 200, 2), "like pages of other .gov sites (2 sites)")
    assert by_all == not_yet == (PriorSource(PriorLevel.ALL, "", 400, 4), "like pages of other sites (4 sites)")
    assert await belief_of(db, elsewhere, 1) == (
        PriorSource(PriorLevel.DOMAIN, "", 12, 1),
        "like other pages of its domain (12 pages revisited)",
    )
    assert await belief_of(db, elsewhere, 200) == (
        PriorSource(PriorLevel.TEMPLATE, "", 12, 1),
        "like other pages of the form /news/* (12 pages revisited)",
    )
