"""recrawl plan: the plan of all domains, and the forecast of one."""

import re

import pytest

from tests.commands import Recrawl, Site
from tests.databases import execute

LATER = "2100-01-01"
# Ordered by path, because keys depend on the port.
EVIDENCE = """
    UPDATE page p SET rate_a = 1 + (37 * o.n % 256) / 50.0, rate_b = 5
      FROM (SELECT domain_id, key, row_number() OVER (ORDER BY url) AS n FROM page) o
     WHERE (p.domain_id, p.key) = (o.domain_id, o.key)
"""


@pytest.fixture
def crawled(recrawl: Recrawl, site: Site, database_url: str) -> Site:
    """Return a site of sixty pages that was crawled once, with simulated evidence of later visits."""
    site.page("/", *(f"/{n}" for n in range(60)))
    for n in range(60):
        site.page(f"/{n}", "/")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    execute(database_url, EVIDENCE)
    return site


def test_a_plan_of_all_domains_shows_prices_and_expectations(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "add", "empty.test", "--offline")
    recrawl("domains", "set", crawled.name, "--budget", "4")

    told = recrawl("plan")
    found = {each["domain"]: each for each in recrawl("plan", "--json").json["domains"]}

    assert found.keys() == {crawled.name, "empty.test"}
    assert found[crawled.name]["fetched"] == 61
    assert found[crawled.name]["requests_per_day"] == pytest.approx(2.96, abs=0.1)
    assert 0 < found[crawled.name]["freshness"] < 1
    assert found["empty.test"]["freshness"] is None
    assert found["empty.test"]["is_default_shadow_price"]
    assert crawled.name in told.out
    assert told.complaint == f"{crawled.name}: {found[crawled.name]['finding']}"


def test_what_more_and_fewer_requests_would_buy(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "set", crawled.name, "--budget", "10")
    recrawl("plan")

    told = recrawl("plan", crawled.name).out
    found = recrawl("plan", crawled.url, "--json").json

    steps = {step["factor"]: step for step in found["steps"]}
    fresh = [step["freshness"] for step in found["steps"]]
    assert (found["budget"], found["has_budget"]) == (10, True)
    assert (min(steps), max(steps)) == (0.1, 10.0)
    assert fresh == sorted(fresh)
    assert steps[10.0]["budget_per_day"] == 100
    assert steps[1.0]["shadow_price_per_request"] == pytest.approx(
        found["shadow_price_in_force"]["per_request"], rel=0.05
    )
    points = 100 * (steps[1.1]["freshness"] - steps[1.0]["freshness"])
    assert found["points_for_tenth"] == pytest.approx(points)
    assert f"10% more requests would raise freshness by {points:.1f} percentage points" in told
    assert "● today" in told
    assert [line.split()[:2] for line in told.splitlines() if line.startswith("today")] == [["today", "10.0"]]
    assert all(line == line.rstrip() for line in told.splitlines())


@pytest.mark.soak
def test_what_the_importance_mix_costs_in_plain_freshness(recrawl: Recrawl, crawled: Site, database_url: str) -> None:
    execute(database_url, "UPDATE cash SET history = history * 50 WHERE get_byte(key, 0) < 64")
    recrawl("domains", "set", crawled.name, "--budget", "10", "--importance-mix", "1")
    recrawl("plan")

    told = recrawl("plan", crawled.name).out
    found = recrawl("plan", crawled.name, "--json").json
    recrawl("domains", "set", crawled.name, "--importance-mix", "0")
    at_zero = recrawl("plan", crawled.name)
    recrawl("domains", "set", crawled.name, "--importance-mix", "1", "--revisit", "similarity")
    by_similarity = recrawl("plan", crawled.name)

    assert 0 < found["plain_freshness"] < found["equal_freshness"] < 1
    assert "With --importance-mix 1, " in told
    assert "with 0 (equal weights): " in told
    assert "--importance-mix" not in at_zero.out + by_similarity.out


WISHES = [(), ("--budget", "10"), ("--budget", "20", "--target-freshness", "80%"), ("--max-age", "3d")]


def cells(shown: str, first: str) -> list[str]:
    """Return the cells of the line that starts with `first`."""
    (line,) = [line for line in shown.splitlines() if line.startswith(first)]
    return re.split(r"\s{2,}", line)


@pytest.mark.soak
@pytest.mark.parametrize("wish", WISHES, ids=" ".join)
def test_today_is_the_same_of_one_domain_as_in_the_table_of_all(
    recrawl: Recrawl, crawled: Site, wish: tuple[str, ...]
) -> None:
    recrawl("domains", "set", crawled.name, "--delay", "1", *wish)

    unplanned = recrawl("plan", crawled.name).out
    table = cells(recrawl("plan").out, crawled.name)
    planned = recrawl("plan", crawled.name).out

    price, requests, fresh, age = table[3], *table[5:]
    assert cells(unplanned, "today")[2:-1] == cells(planned, "today")[2:-1] == [price, requests, fresh, age]
    assert f"{price} importance x days per request, planned 20" in planned
    assert "the default: it was never planned" in unplanned
    assert "a new plan would set" not in planned


@pytest.mark.soak
def test_the_price_of_an_earlier_plan_is_shown_with_todays(recrawl: Recrawl, crawled: Site, database_url: str) -> None:
    recrawl("domains", "set", crawled.name, "--budget", "10")
    before = cells(recrawl("plan", "--at", "2100-01-01").out, crawled.name)[3]
    execute(database_url, "UPDATE page SET rate_a = rate_a * 3", "UPDATE domain_plan SET price_correction = 2")

    told = recrawl("plan", crawled.name, "--at", "2100-01-01T03:00Z")
    found = recrawl("plan", crawled.name, "--at", "2100-01-01T03:00Z", "--json").json

    today = cells(told.out, "today")[2]
    price = " ".join(told.out.partition("Min value of a visit")[2].partition("Budget")[0].split())
    assert today != before
    assert price.startswith(
        f"{found['shadow_price_in_force']['per_request']:.3g} importance x days per request, planned "
    )
    assert found["shadow_price_in_force"]["per_request"] == pytest.approx(2 * float(before), rel=0.01)
    assert "(3 hours ago), corrected by a factor of 2 for today's requests; a new plan would set " in price
    assert f"a new plan would set {today} importance" in price


def test_without_a_budget_the_price_decides_and_politeness_limits(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "set", crawled.name, "--delay", "6h")

    told = recrawl("plan", crawled.name).out
    found = recrawl("plan", crawled.name, "--at", LATER, "--json").json

    assert not found["has_budget"]
    assert found["shadow_price_in_force"]["per_request"] == 0.25
    assert found["cap"] == 8 * 4
    (today,) = [step for step in found["steps"] if step["factor"] == 1.0]
    assert today["budget_per_day"] == found["budget"]
    assert 0.5 < today["shadow_price_per_request"] / 0.25 < 2  # demand is nearly flat there
    assert [step["is_allowed"] for step in found["steps"]][-1] is False
    assert "no budget is set" in told
    assert "* Politeness limits requests to 32 per day" in told


def test_a_shared_budget_is_shown_with_the_domains_share(
    recrawl: Recrawl, crawled: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECRAWL_BUDGET_PER_DAY", "20")
    recrawl("plan")

    told = recrawl("plan", crawled.name).out
    found = recrawl("plan", crawled.name, "--json").json

    assert (found["source"], found["overall"]) == ("overall budget", 20)
    assert found["budget"] == pytest.approx(20, abs=0.1)
    assert [step["is_allowed"] for step in found["steps"]] == [step["factor"] <= 1 for step in found["steps"]]
    assert "20 (its share of the shared budget)" in told
    assert "* Exceeds the shared budget of all domains (20 per day)" in told


def test_a_zero_budget_is_shown_with_other_budgets(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "set", crawled.name, "--budget", "0")
    recrawl("plan")

    told = recrawl("plan", crawled.name).out
    found = recrawl("plan", crawled.name, "--json").json

    fresh = [step["freshness"] for step in found["steps"]]
    assert "0 (its own budget; no requests are sent)" in told
    assert "Min value" not in told.partition("\n\n")[0]
    assert "today" not in told
    assert found["points_for_tenth"] is None
    assert {step["factor"] for step in found["steps"]} == {None}
    assert fresh == sorted(fresh)
    assert fresh[0] < fresh[-1]
    assert max(step["longest_interval_days"] for step in found["steps"][-3:]) == 180


def test_a_target_age_is_shown_and_holds_for_more_requests(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "set", crawled.name, "--max-age", "3d")
    recrawl("plan")

    told = recrawl("plan", crawled.name).out
    found = recrawl("plan", crawled.name, "--json").json

    waits = {step["factor"]: step["longest_interval_days"] for step in found["steps"]}
    assert f"{found['budget']:,.0f} (needed for its target)" in told
    assert found["source"] == "target"
    assert (waits[1.0], waits[10.0]) == (3, 3)
    assert waits[0.5] > 5


@pytest.mark.soak
def test_policies_are_compared_on_what_is_believed_of_the_domains_own_pages(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "set", crawled.name, "--budget", "10")
    recrawl("plan")

    told = recrawl("plan", crawled.name).out
    price, fixed, similarity = recrawl("plan", crawled.name, "--json").json["policies"]

    assert [each["is_today"] for each in (price, fixed, similarity)] == [True, False, False]
    assert (price["policy"], similarity["policy"]) == ("value", "similarity")
    for other in (fixed, similarity):
        assert other["requests_per_day"] == pytest.approx(price["requests_per_day"], rel=1e-3)
        assert other["freshness"] < price["freshness"]
    assert any(line.startswith("value (current)") for line in told.splitlines())
    assert "Revisit policy" not in told
    assert recrawl("domains", "set", crawled.name, "--revisit", fixed["policy"]).code == 0
    told = recrawl("plan", crawled.name).out
    own, price, *_ = recrawl("plan", crawled.name, "--json").json["policies"]
    assert re.search(rf"Revisit policy +{fixed['policy']}", told)
    assert (own["policy"], own["is_today"], price["policy"]) == (fixed["policy"], True, "value")
    assert own["requests_per_day"] == pytest.approx(price["requests_per_day"], rel=1e-2)
    assert own["freshness"] == pytest.approx(fixed["freshness"], rel=1e-2)


def test_one_domain_of_another_time_can_be_planned_alone(recrawl: Recrawl, crawled: Site, database_url: str) -> None:
    recrawl("domains", "add", "old.test", "--offline", "--at", "2020-01-01")

    refused = recrawl("plan", "--at", "2020-02-01")
    alone = recrawl("plan", "--only", "old.test", "--at", "2020-02-01", "--json")
    both = recrawl("plan", crawled.name, "--only", "old.test")

    assert refused.code == 2
    assert [each["domain"] for each in alone.json["domains"]] == ["old.test"]
    assert both.code == 2


def test_a_domain_without_pages_and_an_unknown_one_get_a_sentence(recrawl: Recrawl) -> None:
    assert "No domain is registered" in recrawl("plan").out
    recrawl("domains", "add", "a.test", "--offline")

    empty = recrawl("plan", "a.test")
    unknown = recrawl("plan", "b.test")

    assert (empty.code, empty.out) == (1, "a.test has no fetched pages yet: recrawl crawl a.test\n")
    assert recrawl("plan", "a.test", "--json").json == {"domain": "a.test", "fetched": 0, "steps": []}
    assert unknown.code == 2
    assert "b.test is not registered" in unknown.complaint


def test_an_instant_before_the_last_visit_is_refused(recrawl: Recrawl, crawled: Site) -> None:
    for arguments in (("plan",), ("plan", crawled.name)):
        done = recrawl(*arguments, "--at", "2020-01-01")
        assert done.code == 2
        assert "was last visited at" in done.complaint
