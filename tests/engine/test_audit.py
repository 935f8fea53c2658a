"""Audits over real domains in the store: what is counted, what is drawn, and when a report is wrong."""

from datetime import UTC, date, datetime, timedelta

import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.calibration import Agreement, pool_agreements
from crawler.core.http.urls import Authority
from crawler.core.page_rules import PageRule
from crawler.core.visit.state import NEVER
from crawler.planner.audit import ALL, audit_domains, list_findings
from crawler.store import domains, plan
from crawler.store.database import Database
from flows.upkeep import render_audits
from tests.store.made_up import take
from tests.store.populated import Bulk, add, fetched, look

NIGHT = datetime(2026, 3, 10, 0, 20, tzinfo=UTC)
YESTERDAY = datetime(2026, 3, 9, 11, tzinfo=UTC)
NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
CALIBRATION = "SELECT day, audit, visits, expected, found, variance FROM calibration ORDER BY day, audit"


async def registered(db: Database, name: str, domain_settings: DomainSettings | None = None) -> Domain:
    return await domains.register(
        db, Authority(name), scheme="http", domain_settings=domain_settings or DomainSettings(), at=YESTERDAY
    )


async def test_looks_of_finished_days_are_counted_against_their_chances(db: Database) -> None:
    domain = await registered(db, "a.test")
    await look(db, domain, ["unchanged", "changed", "cosmetic", "unknown", "gone"], at=YESTERDAY, expected=0.25)
    await look(db, domain, ["changed", "added"], at=YESTERDAY + timedelta(hours=1), expected=None)
    await look(db, domain, ["changed"] * 2, at=YESTERDAY - timedelta(days=1), expected=0.5, audit=True)
    await look(db, domain, ["changed"], at=YESTERDAY - timedelta(days=2), expected=0.5)  # counted two nights ago
    await look(db, domain, ["changed"], at=NIGHT - timedelta(minutes=5), expected=0.5)  # its day is not over

    for _ in range(2):  # again, with the same result
        await audit_domains(db, at=NIGHT)

    assert await fetched(db, CALIBRATION) == [
        (date(2026, 3, 8), True, 2, 1.0, 2, 0.5),
        (date(2026, 3, 9), False, 3, 0.75, 1, 0.5625),
    ]
    reported = await fetched(db, "SELECT expected_change, found_change FROM report_calibration WHERE NOT audit")
    assert reported == [(0.25, pytest.approx(1 / 3))]


async def test_a_hundredth_of_the_budget_is_drawn_from_known_pages_and_wanted_though_not_due(db: Database) -> None:
    domain = await registered(db, "a.test", DomainSettings(budget_per_day=1000))
    keys = await add(db, domain, Bulk(400), at=NIGHT)
    await add(db, domain, Bulk(400, state="gone", first=1000), at=YESTERDAY)

    (first,) = await audit_domains(db, at=NIGHT)
    (again,) = await audit_domains(db, at=NIGHT + timedelta(minutes=1))  # the pages of the first one still wait
    posted = await fetched(db, "SELECT payload -> 'keys' FROM inbox WHERE kind = 'audit'")

    assert 8 <= first.drawn <= 10  # two of the ten points may lead to the same page
    assert (again.drawn, len(posted)) == (0, 1)
    drawn = posted[0][0]
    assert isinstance(drawn, list)
    assert {bytes.fromhex(key) for key in drawn} <= set(keys)
    await take(db, NIGHT + timedelta(minutes=2))  # drains the inbox
    wanted = "SELECT count(*) FROM frontier WHERE request_reason = 2 AND due_at <= %s"
    assert await fetched(db, wanted, NIGHT + timedelta(minutes=2)) == [(first.drawn,)]


async def test_other_days_draw_other_pages_and_all_in_the_end(db: Database) -> None:
    domain = await registered(db, "a.test", DomainSettings(budget_per_day=500))
    keys = await add(db, domain, Bulk(12), at=YESTERDAY)

    days = [set(await plan.draw_sample(db, domain, max_pages=5, at=NIGHT))]
    for day in range(1, 30):
        await fetched(db, "DELETE FROM inbox RETURNING id")
        days.append(set(await plan.draw_sample(db, domain, max_pages=5, at=NIGHT + timedelta(days=day))))

    assert len({frozenset(day) for day in days}) > 20
    assert set.union(*days) == set(keys)
    assert all(1 <= len(day) <= 5 for day in days)


async def test_the_sample_is_bounded_by_what_the_domain_may_ask_for(db: Database) -> None:
    domain_settings = {
        "large.test": DomainSettings(budget_per_day=10**6),
        "none.test": DomainSettings(),
        "shut.test": DomainSettings(budget_per_day=0),
        "small.test": DomainSettings(budget_per_day=50),
    }
    for name, wish in domain_settings.items():
        domain = await registered(db, name, wish)
        await add(db, domain, Bulk(600), at=YESTERDAY)
        await look(db, domain, ["unchanged"] * 250, at=YESTERDAY, expected=0.2)
    paused = await registered(db, "paused.test")
    await add(db, paused, Bulk(10), at=YESTERDAY)
    await domains.set_paused(db, paused, paused=True)
    await registered(db, "empty.test")

    drawn = {str(found.domain.authority): found.drawn for found in await audit_domains(db, at=NIGHT)}
    later = await audit_domains(db, at=NIGHT + timedelta(days=1))

    assert 140 < drawn.pop("large.test") <= 200  # some of the 200 points lead to the same page
    # Half a page a day.
    assert drawn.pop("small.test") + sum(each.drawn for each in later if each.domain.authority == "small.test") == 1
    assert drawn == {"none.test": 2, "shut.test": 0, "paused.test": 0, "empty.test": 0}


async def test_a_freshness_report_that_is_off_is_found_out_and_told(db: Database) -> None:
    rosy, fair, idle = [await registered(db, name) for name in ("rosy.test", "fair.test", "idle.test")]
    await look(db, rosy, ["changed"] * 60 + ["unchanged"] * 40, at=YESTERDAY, expected=0.3, audit=True)
    await look(db, fair, ["changed"] * 32 + ["unchanged"] * 68, at=YESTERDAY, expected=0.3, audit=True)

    found = await audit_domains(db, at=NIGHT)

    off = {finding.name: finding for finding in list_findings(found)}
    assert set(off) == {"rosy.test", ALL}
    assert all(finding.by_chance for finding in off.values())
    assert off["rosy.test"].agreement.expected_fresh == pytest.approx(0.7)
    assert off["rosy.test"].agreement.found_fresh == pytest.approx(0.4)
    assert off["rosy.test"].agreement.deviations == pytest.approx(30 / 21**0.5)
    assert off[ALL].agreement.visits == 200
    told = render_audits(found)
    assert "| rosy.test | 0 | 100 | 70% | 40% | 0 | - | - |" in told
    assert "The freshness predicted for rosy.test is wrong" in told
    assert "reported for fair.test" not in told
    assert f"| {idle.authority} | 0 | 0 | - | - | 0 | - | - |" in told
    assert "agree with what visits found" in render_audits([each for each in found if each.domain.id != rosy.id])


async def test_chances_of_change_that_are_off_in_scheduled_looks_are_a_finding_of_their_own(db: Database) -> None:
    domain = await registered(db, "a.test")
    await look(db, domain, ["changed"] * 90 + ["unchanged"] * 10, at=YESTERDAY, expected=0.3)
    await look(db, domain, ["changed"] * 32 + ["unchanged"] * 68, at=NOON, expected=0.3, audit=True)

    found = await audit_domains(db, at=NIGHT)

    (off,) = list_findings(found)
    assert (off.name, off.by_chance, off.agreement.visits, off.agreement.found) == ("a.test", False, 100, 90)
    assert off.agreement.expected == pytest.approx(30)
    assert "at scheduled visits for a.test is wrong: of 100 scheduled visits, 70%" in render_audits(found)


async def test_days_on_which_no_audit_ran_are_counted_when_it_runs_again(db: Database) -> None:
    domain = await registered(db, "a.test")
    for day in (0, 1, 2, 3, 5, 6):
        await look(db, domain, ["unchanged"] * (day + 1), at=YESTERDAY + timedelta(days=day), expected=0.25)
    await audit_domains(db, at=NIGHT)
    # recorded after it was counted
    await look(db, domain, ["unchanged"], at=YESTERDAY + timedelta(hours=1), expected=0.25)

    await audit_domains(db, at=NIGHT + timedelta(days=6))

    first = YESTERDAY.date()
    counted = await fetched(db, "SELECT day, visits FROM calibration ORDER BY day")
    assert counted == [
        (first + timedelta(days=day), visits) for day, visits in ((0, 2), (1, 2), (2, 3), (3, 4), (5, 6), (6, 7))
    ]


async def test_a_count_outlasts_its_looks(db: Database) -> None:
    domain = await registered(db, "a.test")
    await look(db, domain, ["unchanged"] * 3, at=YESTERDAY, expected=0.25)
    await audit_domains(db, at=NIGHT)
    await fetched(db, "DELETE FROM visit RETURNING at")

    await audit_domains(db, at=NIGHT + timedelta(hours=1))

    assert await fetched(db, "SELECT visits FROM calibration") == [(3,)]


async def test_pages_that_are_wanted_once_are_not_audited(db: Database) -> None:
    domain = await registered(db, "a.test", DomainSettings(rules=(PageRule("/1", once=True),)))
    await add(db, domain, Bulk(20, first=100), at=YESTERDAY)  # fetched before there was a rule, and not postponed since
    others = set(await add(db, domain, Bulk(20, first=200), at=YESTERDAY))
    put_off = await add(db, domain, Bulk(20, first=300), at=YESTERDAY)  # by a rule that no longer exists
    await fetched(db, "UPDATE frontier SET due_at = %s WHERE key = ANY(%s) RETURNING key", NEVER, put_off)

    drawn = set(await plan.draw_sample(db, domain, max_pages=100, at=NIGHT))

    assert drawn
    assert drawn <= others


async def test_a_few_pages_among_many_that_are_not_known_are_drawn(db: Database) -> None:
    domain = await registered(db, "a.test")
    await add(db, domain, Bulk(600, state="unfetched"), at=YESTERDAY)
    keys = await add(db, domain, Bulk(3, first=1000), at=YESTERDAY)

    assert set(await plan.draw_sample(db, domain, max_pages=50, at=NIGHT)) == set(keys)


@pytest.mark.parametrize(
    ("agreement", "is_off"),
    [
        (Agreement(), False),
        (Agreement(visits=100, expected=30.0, found=40, variance=21.0), False),  # 2.2 deviations
        (Agreement(visits=100, expected=30.0, found=45, variance=21.0), True),
        (
            Agreement(visits=100, expected=30.0, found=15, variance=21.0),
            True,
        ),  # a report that is too pessimistic is wrong, too
        (Agreement(visits=10**6, expected=3e5, found=320_000, variance=2.1e5), False),  # significant, but only 2 points
        (Agreement(visits=10, expected=0.0, found=1, variance=0.0), True),
    ],
)
def test_a_report_is_off_beyond_three_deviations_and_three_points(agreement: Agreement, is_off: bool) -> None:
    assert agreement.is_off is is_off


def test_agreements_add_up() -> None:
    assert pool_agreements([Agreement(10, 3.0, 4, 2.1), Agreement(5, 1.0, 0, 0.8)]) == Agreement(
        15, 4.0, 4, 2.9000000000000004
    )
