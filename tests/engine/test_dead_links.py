"""Dead links and chains of redirects cost little of a site's budget, even if there are many."""

from collections import Counter

import pytest
from msgspec.structs import replace

from crawler.store import domains, report
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, coins_missing
from tests.engine.scripted import Said, scripted, text

DEAD = tuple(f"/dead{n}" for n in range(60))
LIVE = tuple(f"/live{n}" for n in range(12))
SITE = {"/": text("home", *LIVE, *DEAD), **{path: text(f"live {path}") for path in LIVE}}
BUDGET = 10  # requests per day


@pytest.mark.soak
async def test_dead_links_never_take_whole_days_of_a_tight_budget(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=BUDGET), at=START)
        by_day = []
        for day in range(20, 80, 2):
            site.pages |= {path: text(f"live {path} on day {day}") for path in LIVE}
            site.asked.clear()
            await site.crawl(db, at=START + day * DAY)
            by_day.append(Counter(path in DEAD for path, _ in site.asked))

        assert max(counts[True] for counts in by_day) <= 0.2 * BUDGET + 1
        assert sum(counts[True] for counts in by_day) <= 0.2 * sum(map(Counter.total, by_day))
        assert sum(counts[True] for counts in by_day) > 0  # they are still tried again
        assert await report.check_invariants(db) == []


@pytest.mark.soak
async def test_an_endless_chain_of_redirects_for_now_costs_some_requests_a_month(db: Database) -> None:
    site_of_old = {"/": text("home", "/go/start", *LIVE), **{path: text(f"live {path}") for path in LIVE}}
    async with scripted(db, site_of_old) as (site, _):
        site.trouble = ChainOfRedirects()
        for day in range(60):
            await site.crawl(db, at=START + day * DAY)

        asked = [path for path, _ in site.asked if path.startswith("/go/")]
        assert len(asked) <= 60
        assert len(set(asked)) > 3
        assert await coins_missing(db) == 0


class ChainOfRedirects:
    """A site that redirects each request for /go/... to another new URL."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self, path: str) -> Said | None:
        if not path.startswith("/go/"):
            return None
        self.given += 1
        return Said(302, location=f"/go/{self.given}")


async def test_a_page_behind_a_few_redirects_is_found_at_once(db: Database) -> None:
    chain = {f"/hop{n}": Said(302, location=f"/hop{n + 1}") for n in range(3)}
    async with scripted(db, {"/": text("home", "/hop0"), **chain, "/hop3": text("the end")}) as (site, _):
        await site.crawl(db, at=START)

        assert [path for path, _ in site.asked][-1] == "/hop3"
