"""Planning over real domains in the store: relative importance, priors, shadow prices, and targets out of reach."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from crawler.core.budget.shadow_price import CORRECTION_DOWN, CORRECTION_UP
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import PRIOR
from crawler.core.http.urls import Authority, Url
from crawler.core.page_rules import PageRule
from crawler.planner.plan import PlannedDomain, plan_domains
from crawler.settings import Settings
from crawler.store import claim, domains, frontier, record
from crawler.store.database import Database
from tests.store.made_up import look, status, take, targets, url
from tests.store.populated import Bulk, add, fetched

AT = datetime(2026, 3, 1, tzinfo=UTC)
SETTINGS = Settings(database_url=None)


async def registered(
    db: Database, name: str, domain_settings: DomainSettings | None = None, *, aliases: tuple[str, ...] = ()
) -> Domain:
    names = tuple(map(Authority, aliases))
    return await domains.register(
        db, Authority(name), scheme="http", aliases=names, domain_settings=domain_settings or DomainSettings(), at=AT
    )


async def populated(db: Database, name: str, domain_settings: DomainSettings | None = None) -> Domain:
    """Return a domain of 300 pages that change every 10 days, and 100 that change every other day."""
    domain = await registered(db, name, domain_settings)
    await add(db, domain, Bulk(300, a=3.0, b=30.0), at=AT)
    await add(db, domain, Bulk(100, a=5.0, b=10.0, first=1000), at=AT)
    return domain


async def planned_for(
    db: Database, domain: Domain, settings: Settings = SETTINGS, *, at: datetime = AT
) -> PlannedDomain:
    return next(each for each in await plan_domains(db, at=at, settings=settings) if each.domain.id == domain.id)


async def changed(db: Database, domain: Domain, domain_settings: DomainSettings) -> Domain:
    return await domains.change_settings(db, domain, domain_settings, at=AT)


async def read_root(db: Database, links: dict[str, list[Url]]) -> None:
    """Visit the root of every domain, with links to these URLs."""
    for n in range(len(links)):
        at = AT + timedelta(minutes=n)
        lease = await take(db, at)
        page = "".join(f'<a href="{link}">x</a>' for link in links[lease.domain.authority])
        (target,) = await targets(db, lease, at)
        body = status(200, f"<p>words{page}".encode())
        await record.record_visits(db, lease, record.Batch([look(target, body, at, lease.domain)], max_pages=100))
        await claim.release(db, lease, at=at)


async def test_a_domain_to_which_others_link_is_worth_more_and_its_user_has_a_say(db: Database) -> None:
    hub = await registered(db, "hub.test", aliases=("www.hub.test",))
    fan = await registered(db, "fan.test")
    dear = await registered(db, "dear.test", DomainSettings(weight=3.0))
    away = Url("http://www.hub.test/deep/page")
    strange = Url("http://unknown.test/")
    await read_root(db, {"hub.test": [], "fan.test": [away, strange], "dear.test": [away, url(dear, 1)]})

    planned = {each.domain.id: each.importance for each in await plan_domains(db, at=AT, settings=SETTINGS)}

    listed = {each.domain.id: each.importance for each in await domains.list_domains(db)}
    assert planned == listed
    assert planned[hub.id] > planned[fan.id]
    assert planned[dear.id] == pytest.approx(3 * planned[fan.id])
    assert planned[hub.id] + planned[fan.id] + planned[dear.id] / 3 == pytest.approx(3)


async def test_before_anything_was_planned_a_domain_is_worth_its_weight(db: Database) -> None:
    await registered(db, "dear.test", DomainSettings(weight=3.0))

    (listed,) = await domains.list_domains(db)

    assert listed.importance == 3.0


async def test_a_plan_without_domains_and_a_domain_removed_meanwhile_are_no_errors(db: Database) -> None:
    assert await plan_domains(db, at=AT, settings=SETTINGS) == []
    gone = await registered(db, "gone.test")
    await domains.remove(db, gone)

    assert await plan_domains(db, at=AT, settings=SETTINGS) == []


async def test_a_domain_without_any_limit_keeps_the_usual_price(db: Database) -> None:
    domain = await populated(db, "free.test", DomainSettings(allow_private=True))

    planned = await planned_for(db, domain)

    assert planned.plan.shadow_price is None
    assert planned.plan.finding == ""
    assert 0.5 < planned.plan.expected.freshness < 1
    assert await fetched(db, "SELECT price_request FROM domain_plan") == [(None,)]
    assert await fetched(db, "SELECT id FROM inbox WHERE kind = 'reprice'") == []


async def test_a_budget_is_spent_and_twice_the_budget_is_spent_after_the_next_plan(db: Database) -> None:
    domain = await populated(db, "dear.test", DomainSettings(budget_per_day=40))
    before = await fetched(db, "SELECT key, due_at, xmin FROM frontier ORDER BY key")
    first = await planned_for(db, domain)
    domain = await changed(db, domain, DomainSettings(budget_per_day=80))
    second = await planned_for(db, domain)

    assert first.plan.requests == pytest.approx(39, abs=0.7)  # the rest is for robots.txt and audits
    assert second.plan.requests == pytest.approx(78, abs=1.2)
    assert second.shadow_price.per_request < first.shadow_price.per_request
    assert first.plan.expected.freshness < second.plan.expected.freshness
    assert await fetched(db, "SELECT price_request FROM domain_plan") == [(second.shadow_price.per_request,)]
    assert await fetched(db, "SELECT count(*) FROM inbox WHERE kind = 'reprice'") == [(1,)]
    assert await fetched(db, "SELECT key, due_at, xmin FROM frontier ORDER BY key") == before  # not rewritten

    await fetched(db, "DELETE FROM inbox RETURNING id")
    await planned_for(db, domain, at=AT + timedelta(minutes=10))

    assert await fetched(db, "SELECT id FROM inbox") == []  # an unchanged price wakes no domain


@pytest.mark.soak
async def test_a_budget_scales_the_gaps_of_a_policy_that_without_one_hold(db: Database) -> None:
    similar = DomainSettings(revisit="similarity", allow_private=True)
    domain = await populated(db, "alike.test", similar)
    free = await planned_for(db, domain)
    asked = free.plan.expected.requests
    few, many = [
        await planned_for(db, await changed(db, domain, replace(similar, budget_per_day=budget)))
        for budget in (40, 160)
    ]

    assert 50 < asked < 80
    assert free.plan.requests == pytest.approx(asked)
    assert few.plan.requests == pytest.approx(39, abs=0.7)
    assert many.plan.requests == pytest.approx(157, abs=1.5)
    assert few.plan.expected.freshness < free.plan.expected.freshness < many.plan.expected.freshness
    assert "as long as rules or the policy require" in few.plan.finding
    assert many.plan.finding == ""


@pytest.mark.soak
async def test_a_delay_that_leaves_fewer_requests_than_are_worth_it_has_a_price_of_its_own(db: Database) -> None:
    await populated(db, "one.test", DomainSettings(delay=timedelta(hours=1)))
    await populated(db, "two.test", DomainSettings(delay=timedelta(hours=1), parallelism=2))

    one, two = await plan_domains(db, at=AT, settings=SETTINGS)

    assert one.plan.requests == pytest.approx(24, abs=2)
    assert two.plan.requests == pytest.approx(48, abs=3)
    assert one.shadow_price.per_request > two.shadow_price.per_request > SETTINGS.min_value


@pytest.mark.soak
async def test_domains_that_share_a_budget_have_one_price_by_their_importance(db: Database) -> None:
    dear = await populated(db, "dear.test", DomainSettings(weight=4.0))
    fair = await populated(db, "fair.test")
    settings = SETTINGS.model_copy(update={"budget_per_day": 60})

    a, b = await plan_domains(db, at=AT, settings=settings)

    assert (a.domain.id, b.domain.id) == (dear.id, fair.id)
    assert a.plan.requests + b.plan.requests == pytest.approx(58.4, abs=1)
    assert a.shadow_price.per_request * 4 == pytest.approx(b.shadow_price.per_request)
    assert a.plan.requests > 1.5 * b.plan.requests


@pytest.mark.soak
async def test_a_domain_that_is_paused_or_held_leaves_its_part_of_the_overall_budget_to_the_others(
    db: Database,
) -> None:
    shut = await populated(db, "shut.test")
    await populated(db, "fair.test")
    settings = SETTINGS.model_copy(update={"budget_per_day": 60})
    both, _ = await plan_domains(db, at=AT, settings=settings)

    await domains.set_paused(db, shut, paused=True)
    paused = await plan_domains(db, at=AT, settings=settings)
    await domains.set_paused(db, shut, paused=False)
    hold = "UPDATE domain_state SET resume_at = %s WHERE domain_id = %s RETURNING domain_id"
    await fetched(db, hold, AT + timedelta(days=1), shut.id)
    held = await plan_domains(db, at=AT, settings=settings)
    await fetched(db, hold, AT + timedelta(minutes=5), shut.id)
    soon = await plan_domains(db, at=AT, settings=settings)

    assert both.plan.requests < 40
    for other, closed in (paused, held):
        assert other.plan.requests == pytest.approx(58.4, abs=0.5)
        assert closed.plan.requests == 0
        # for when it is resumed
        assert closed.shadow_price.per_request == pytest.approx(both.shadow_price.per_request, rel=0.1)
    assert soon[0].plan.requests == pytest.approx(both.plan.requests, rel=0.01)


@pytest.mark.soak
async def test_a_budget_in_bytes_has_a_price_for_a_byte_and_so_has_one_of_all_together(db: Database) -> None:
    await populated(db, "dear.test", DomainSettings(weight=4.0, bytes_per_day=10_000))
    await populated(db, "fair.test")

    own, _ = await plan_domains(db, at=AT, settings=SETTINGS)
    together = await plan_domains(db, at=AT, settings=SETTINGS.model_copy(update={"bytes_per_day": 12_000}))

    assert own.shadow_price.per_byte > 0
    assert own.plan.expected.received_bytes == pytest.approx(10_000, rel=0.02)  # similar pages come together
    received = [each.plan.expected.received_bytes for each in together]
    assert sum(received) == pytest.approx(12_000, rel=0.02)
    assert received[0] == max(received)


async def test_a_target_asks_for_the_budget_that_reaches_it(db: Database) -> None:
    fresh = DomainSettings(target_freshness=0.8, allow_private=True)
    young = DomainSettings(max_age=timedelta(days=2), allow_private=True)
    await populated(db, "fresh.test", fresh)
    await populated(db, "young.test", young)

    a, b = await plan_domains(db, at=AT, settings=SETTINGS)

    assert a.plan.expected.freshness == pytest.approx(0.8, abs=0.005)
    assert b.plan.expected.oldest_days <= 2
    assert b.plan.target_requests == pytest.approx((400 / 2 + 1) / 0.99, abs=1)  # plus robots.txt and audits
    written = await fetched(db, "SELECT budget_per_day, finding FROM domain_plan ORDER BY domain_id")
    assert written == [(a.plan.target_requests, ""), (b.plan.target_requests, "")]
    assert await fetched(db, "SELECT longest_s FROM domain_plan WHERE domain_id = %s", b.domain.id) == [(172_800.0,)]


async def test_a_target_age_holds_when_pages_are_handed_out_whatever_they_are_worth(db: Database) -> None:
    await populated(db, "young.test", DomainSettings(max_age=timedelta(days=2), allow_private=True))
    await plan_domains(db, at=AT, settings=SETTINGS)

    early, late = AT + timedelta(days=1.9), AT + timedelta(days=2.1)
    lease = await take(db, early, term=timedelta(hours=1))
    before = await targets(db, lease, early, most=400)
    after = await targets(db, lease, late, most=400)

    known = [[target for target in handed if target.version is not None] for handed in (before, after)]
    assert len(known[0]) < 200
    assert len(known[1]) > 250  # all except the guaranteed share of discovery; a floor would be a fifth of 204


async def test_what_a_rule_asks_for_is_planned_and_handed_out_whatever_it_is_worth(db: Database) -> None:
    news = DomainSettings(
        rules=(PageRule("re:/1[0-9]{3}$", max_interval=timedelta(days=1)),), budget_per_day=150, allow_private=True
    )
    domain = await populated(db, "news.test", news)

    planned = await planned_for(db, domain)
    late = AT + timedelta(hours=25)
    lease = await take(db, late)
    handed = await targets(db, lease, late, most=150)

    assert planned.plan.finding == ""
    assert planned.plan.requests == pytest.approx(148, abs=1)
    assert planned.shadow_price.per_request > 2 * SETTINGS.min_value
    assert sum(target.terms.is_ruled for target in handed) == 100
    assert await fetched(db, "SELECT spent_floor FROM domain_state") == [(0,)]


async def test_an_overall_budget_is_spent_by_worth_and_its_floor_takes_a_fifth_of_each_domains_part(
    db: Database,
) -> None:
    settings = SETTINGS.model_copy(update={"budget_per_day": 40, "max_interval": timedelta(days=1)})
    for name in ("one.test", "two.test"):
        await populated(db, name, DomainSettings(allow_private=True))

    planned = await plan_domains(db, at=AT, settings=settings)
    at = AT + timedelta(days=3)
    lease = await take(db, at)
    await frontier.select_targets(db, lease, max_targets=40, at=at, dispatched=(), defaults=settings.defaults)

    assert [each.plan.longest_days for each in planned] == [800 / (0.05 * 40)] * 2
    assert all(each.plan.finding.startswith("A page may wait 400 days, not 1, because the shared") for each in planned)
    assert all(each.shadow_price.per_request < 1e6 for each in planned)
    ages = "UPDATE page SET last_good_at = %s WHERE domain_id = %s RETURNING key"
    await fetched(db, ages, at - timedelta(days=500), lease.domain.id)
    await fetched(db, "UPDATE domain_plan SET price_request = 1e9 RETURNING domain_id")
    handed = await frontier.select_targets(db, lease, max_targets=40, at=at, dispatched=(), defaults=settings.defaults)
    assert len([target for target in handed if target.version is not None]) == 4
    assert await fetched(db, "SELECT spent_floor FROM domain_state ORDER BY spent_floor") == [(0,), (4,)]


@pytest.mark.soak
async def test_a_target_out_of_reach_is_told_with_its_figures(db: Database) -> None:
    await populated(db, "far.test", DomainSettings(target_freshness=0.95, delay=timedelta(hours=1)))
    poor = await populated(db, "poor.test", DomainSettings(max_age=timedelta(days=2), budget_per_day=50))

    a, b = await plan_domains(db, at=AT, settings=SETTINGS)

    assert a.plan.target_requests is not None
    needed = f"{a.plan.target_requests:,.0f} requests a day"
    finding = f"A freshness of 95% needs {needed}; the delay of 3,600 s allows 24, which gives"
    assert a.plan.finding.startswith(finding)
    assert a.plan.expected.freshness < 0.95
    assert "A maximum age of 2 days needs 204 requests a day; the budget of 50 allows one visit" in b.plan.finding
    assert b.plan.requests <= 50
    assert await fetched(db, "SELECT budget_per_day FROM domain_plan WHERE domain_id = %s", poor.id) == [(50,)]


@pytest.mark.soak
async def test_a_budget_too_small_for_the_longest_interval_is_told_and_one_of_nothing_asks_for_nothing(
    db: Database,
) -> None:
    await populated(db, "shut.test", DomainSettings(budget_per_day=0))
    await populated(db, "thin.test", DomainSettings(budget_per_day=10))

    shut, thin = await plan_domains(db, at=AT, settings=SETTINGS)

    assert thin.plan.longest_days == pytest.approx(400 / (0.05 * 10))
    assert thin.plan.finding.startswith("A page may wait 800 days, not 180")
    assert shut.plan.requests == 0
    assert shut.plan.finding == ""


@pytest.mark.soak
async def test_the_trim_stays_where_a_budget_is_used_but_for_a_request_or_two(db: Database) -> None:
    domain = await populated(db, "tiny.test", DomainSettings(budget_per_day=24))
    noon = AT + timedelta(hours=12)
    spend = "UPDATE domain_state SET budget_day = %s, spent_requests = %s RETURNING domain_id"
    trims = []
    for hour, spent in ((0, 12), (1, 11), (2, 12), (3, 11)):  # of 12, 13, 14 and 15
        at = noon + timedelta(hours=hour)
        await fetched(db, spend, noon.date(), spent)
        trims.append((await planned_for(db, domain, at=at)).price_correction)

    assert trims == [1.0, 1.0, 1.0, 1 / CORRECTION_DOWN]


async def test_pages_without_looks_learn_from_their_group_and_a_new_domain_from_all(db: Database) -> None:
    domain = await registered(db, "known.test")
    other = await registered(db, "other.test")
    await fetched(db, "INSERT INTO prior VALUES (%s, 1, '/news/*', 0.5, 10), (%s, 2, '/law/*', 0.5, 10) RETURNING no",
                  domain.id, domain.id)  # fmt: skip
    await add(db, domain, Bulk(200, a=20.0, b=10.0, no=1), at=AT)
    await add(db, domain, Bulk(200, a=1.0, b=400.0, no=2, first=1000), at=AT)

    await plan_domains(db, at=AT, settings=SETTINGS)

    rates = await fetched(db, "SELECT a / b FROM prior WHERE domain_id = %s ORDER BY no", domain.id)
    whole, news, law = (float(str(rate)) for (rate,) in rates)
    assert news > 0.9
    assert law < 0.15
    assert law < whole < news
    ((elsewhere,),) = await fetched(db, "SELECT a / b FROM prior WHERE domain_id = %s", other.id)
    assert float(str(elsewhere)) > PRIOR.rate_per_day
    counts = await fetched(db, "SELECT pages FROM prior WHERE domain_id = %s ORDER BY no", domain.id)
    assert counts == [(0,), (200,), (200,)]


@pytest.mark.soak
async def test_the_trim_rises_only_where_the_budget_is_used_up_and_work_waits(db: Database) -> None:
    domain = await populated(db, "busy.test", DomainSettings(budget_per_day=48))
    noon = AT + timedelta(days=3, hours=12)
    spend = "UPDATE domain_state SET budget_day = %s, spent_requests = %s RETURNING domain_id"
    first = await planned_for(db, domain, at=noon)
    idle = await planned_for(db, domain, at=noon + timedelta(hours=1))

    await fetched(db, spend, noon.date(), 28)  # by two o'clock 28 are allowed, and all pages are due for two days
    dearer = await planned_for(db, domain, at=noon + timedelta(hours=2))
    at_once = await planned_for(db, domain, at=noon + timedelta(hours=2, minutes=5))
    await fetched(db, spend, noon.date(), 20)
    cheaper = await planned_for(db, domain, at=noon + timedelta(hours=3))

    assert (first.price_correction, idle.price_correction) == (1.0, 1.0)
    assert dearer.price_correction == CORRECTION_UP
    assert at_once.price_correction == dearer.price_correction
    assert cheaper.price_correction == pytest.approx(CORRECTION_UP / CORRECTION_DOWN)
