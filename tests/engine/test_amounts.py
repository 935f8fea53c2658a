"""Change magnitude, from the response of a server to the next due time."""

from datetime import timedelta

import numpy as np
import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.planner.plan import plan_domains
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import DAY, QUICK, START, coins_missing, page, rows
from tests.engine.scripted import Said, Scripted, scripted

KINDS = ("story", "price")
PAGES = 6  # of each
GAP = 6 * DAY


def made_words(seed: str, count: int) -> str:
    chance = np.random.default_rng(list(seed.encode()))
    return " ".join("".join(chance.choice(list("abcdefghiklmnoprstu"), 7)) for _ in range(count))


def article(path: str, edition: int) -> Said:
    """Return a page of which each edition replaces half of the sentences (a story), or only one word (a price)."""
    renewed = 4 if path.startswith("/story") else 0
    told = [f"{path} {n} {edition if n < renewed else ''}" for n in range(8)]
    paragraphs = "".join(f"<p>{made_words(each, 30)}" for each in told)
    last = f"<p>It is {made_words(f'{path} {edition}', 1)}"
    return Said(body=f"<title>{made_words(path, 3)}</title><main>{paragraphs}{last}</main>")


def edition(number: int) -> dict[str, Said]:
    paths = [f"/{kind}/{n}" for kind in KINDS for n in range(PAGES)]
    links = "".join(f"<p><a href={path}>{made_words(path, 4)}</a>" for path in paths)
    return {"/": Said(body=f"<main>{links}</main>"), **{path: article(path, number) for path in paths}}


async def looked_at(db: Database, server: Scripted, domain: Domain, *, editions: int) -> None:
    """Visit all pages in each edition, so that all change equally often, with a plan after each."""
    for number in range(editions):
        at = START + number * GAP
        server.pages = edition(number)
        if number:
            await domains.request_refresh(db, domain, prefix=domain.root, at=at)
        while (await server.crawl(db, at=at)).stats.visits:
            at += timedelta(minutes=1)
        await plan_domains(db, at=at, settings=QUICK)


async def gaps(db: Database, domain: Domain) -> dict[str, float]:
    """Return the mean days from the last visit of the pages of a kind to the next one."""
    found = await rows(
        db,
        "SELECT split_part(url, '/', 4), avg(extract(epoch FROM f.due_at - p.last_good_at))::float8 / 86400"
        " FROM page p JOIN frontier f USING (domain_id, key) WHERE domain_id = %s AND p.changes > 0 GROUP BY 1",
        domain.id,
    )
    return dict(found)


@pytest.mark.soak
@pytest.mark.parametrize("value", ["magnitude", "equal"])
async def test_pages_that_change_much_are_looked_at_sooner_than_those_that_change_little(
    db: Database, value: str
) -> None:
    """All of them change equally often and are equally important, so only the magnitude differs."""
    async with scripted(db, edition(0)) as (server, domain):
        await domains.change_settings(db, domain, replace(domain.settings, change_weight=value), at=START)
        await looked_at(db, server, domain, editions=5)

        story, price = [await page(db, domain, f"/{kind}/1") for kind in KINDS]
        assert (story["changes"], price["changes"]) == (4, 4)
        assert story["magnitude_total"] / story["magnitude_changes"] > 0.3
        assert price["magnitude_total"] / price["magnitude_changes"] < 0.05
        by_kind = await gaps(db, domain)
        if value == "magnitude":
            assert by_kind["story"] < 0.8 * by_kind["price"]
        else:
            assert by_kind["story"] == pytest.approx(by_kind["price"], rel=0.15)
        assert await rows(db, "SELECT count(*) FROM visit WHERE (change = 'changed') <> (magnitude IS NOT NULL)") == [
            (0,)
        ]
        assert await coins_missing(db) == 0


@pytest.mark.soak
async def test_what_the_pages_of_a_group_have_shown_is_expected_of_a_page_that_never_changed(db: Database) -> None:
    async with scripted(db, edition(0)) as (server, domain):
        await looked_at(db, server, domain, editions=4)

        found = dict(await rows(db, "SELECT template, magnitude FROM prior WHERE domain_id = %s", domain.id))
        assert found["/story/*"] > 2 * found["/price/*"]
        ((mean,),) = await rows(db, "SELECT mean_magnitude FROM domain_plan WHERE domain_id = %s", domain.id)
        assert found["/price/*"] < mean < found["/story/*"]


@pytest.mark.soak
async def test_another_value_of_changes_weighs_all_pages_anew(db: Database) -> None:
    async with scripted(db, edition(0)) as (server, domain):
        await looked_at(db, server, domain, editions=5)
        before = await gaps(db, domain)
        at = START + 4 * GAP + timedelta(hours=1)
        await domains.change_settings(db, domain, replace(domain.settings, change_weight="equal"), at=at)
        await server.crawl(db, at=at)

        after = await gaps(db, domain)
        assert after["story"] > before["story"]
        assert after["price"] < before["price"]
        assert after["story"] == pytest.approx(after["price"], rel=0.15)
