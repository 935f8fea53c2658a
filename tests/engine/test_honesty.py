"""Servers with wrong validators on a real connection: what a crawl detects, which changes it catches, and new trust."""

import pytest

from crawler.core.validator_trust import YOUNG_REVISITS, Validator
from crawler.store.database import Database
from crawler.store.learned.credibility import list_trust_rows
from tests.engine.crawls import page, recrawl, versions
from tests.engine.liars import (
    Asked,
    Liar,
    Policy,
    Words,
    always_304,
    always_304_and_nothing_said_later,
    constant_etag,
    date_of_the_request,
    equal_length,
    etag_of_the_minute,
    etag_per_replica,
    frozen_date,
    honest,
    is_up_to_date,
    look_again,
    served,
    standing,
)

ROUNDS = 5  # of revisits of every page: 20 in all


@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (constant_etag, Validator.ETAG),
        (frozen_date, Validator.LAST_MODIFIED),
        pytest.param(always_304, Validator.ETAG, marks=pytest.mark.soak),  # see also test_liars.py
        pytest.param(always_304, Validator.LAST_MODIFIED, marks=pytest.mark.soak),
        (always_304_and_nothing_said_later, Validator.ETAG),
    ],
)
async def test_words_that_hide_changes_are_found_within_20_revisits_and_the_changes_caught(
    db: Database, say: Policy, kind: Validator
) -> None:
    async with served(db, say) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS - 1, edits=True)
        await look_again(db, site, domain, rounds=1, edits=False)

        assert (await standing(db, domain, kind)).rating == "lies"
        assert await is_up_to_date(db, site, domain)


@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (etag_per_replica, Validator.ETAG),
        pytest.param(date_of_the_request, Validator.LAST_MODIFIED, marks=pytest.mark.soak),  # see also test_liars.py
        pytest.param(etag_of_the_minute, Validator.ETAG, marks=pytest.mark.soak),
    ],
)
async def test_words_that_differ_for_one_body_are_found_within_20_revisits_and_changes_are_caught(
    db: Database, say: Policy, kind: Validator
) -> None:
    async with served(db, say) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS - 1, edits=False)
        await look_again(db, site, domain, rounds=1, edits=True)

        assert (await standing(db, domain, kind)).rating == "flaps"
        assert await is_up_to_date(db, site, domain)


async def test_an_equal_length_is_known_to_say_nothing_and_every_change_is_caught(db: Database) -> None:
    async with served(db, equal_length) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS, edits=True)

        assert (await standing(db, domain, Validator.LENGTH)).rating == "lies"
        assert set((await versions(db, domain)).values()) == {1, 1 + ROUNDS}


@pytest.mark.soak
async def test_beside_an_etag_per_replica_the_date_alone_spares_the_bodies(db: Database) -> None:
    async with served(db, etag_per_replica) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS, edits=False)
        site.asked.clear()

        await look_again(db, site, domain, rounds=2, edits=False)

        conditional = [asked for asked in site.asked if asked.is_conditional and asked.path != "/"]
        assert conditional
        assert {asked.etag for asked in conditional} == {None}


@pytest.mark.soak
async def test_honest_challenges_restore_trust(db: Database) -> None:
    async with served(db, always_304, pages=12) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=2, edits=True)
        assert (await standing(db, domain, Validator.ETAG)).rating == "lies"

        site.say = honest
        await look_again(db, site, domain, rounds=7, edits=True)
        site.bodies = 0
        await look_again(db, site, domain, rounds=2, edits=False)

        assert (await standing(db, domain, Validator.ETAG)).rating == "honest"
        assert site.bodies <= 2 + 1  # the first page has its own validator checks


@pytest.mark.soak
async def test_a_section_that_lies_does_not_spoil_the_rest(db: Database) -> None:
    """Only young sections without changes are affected."""

    def one_section_lies(site: Liar, asked: Asked) -> Words:
        return constant_etag(site, asked) if asked.path.startswith("/page/") else honest(site, asked)

    async with served(db, one_section_lies) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=YOUNG_REVISITS, edits=True)
        site.asked.clear()
        await look_again(db, site, domain, rounds=3, edits=True)

        assert (await standing(db, domain, Validator.ETAG)).rating == "lies"
        assert not any(asked.is_conditional for asked in site.asked if asked.path != "/")
        assert any(asked.is_conditional for asked in site.asked if asked.path == "/")


async def test_an_honest_server_is_spared_95_percent_of_the_bodies(db: Database) -> None:
    rounds, pages = 5, 40
    async with served(db, honest, pages=pages) as (site, domain):
        await recrawl(db, domain, at=site.at)
        site.bodies = 0
        site.asked.clear()

        await look_again(db, site, domain, rounds=rounds, edits=False)

        of_pages = [asked for asked in site.asked if asked.path != "/"]
        assert len(of_pages) == rounds * pages
        assert sum(asked.is_conditional for asked in of_pages) >= 0.95 * len(of_pages)
        etag = (await page(db, domain, "/page/1"))["etag"]
        assert {asked.etag for asked in of_pages if asked.path == "/page/1" and asked.is_conditional} == {etag}


@pytest.mark.soak
async def test_a_domain_of_ten_sections_is_spared_as_many_bodies_in_its_first_200_revisits(db: Database) -> None:
    rounds, pages = 5, 40
    async with served(db, honest, pages=pages, sections=10) as (site, domain):
        await recrawl(db, domain, at=site.at)
        site.asked.clear()

        await look_again(db, site, domain, rounds=rounds, edits=False)

        of_pages = [asked for asked in site.asked if asked.path != "/"]
        assert len(of_pages) == rounds * pages
        assert sum(asked.is_conditional for asked in of_pages) >= 0.95 * len(of_pages)


async def test_a_lie_is_found_within_20_revisits_though_each_page_is_a_section_of_its_own(
    db: Database,
) -> None:
    pages = 20
    async with served(db, constant_etag, pages=pages, sections=pages) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=1, edits=True)

        assert "lies" in {one.rating for one in await list_trust_rows(db, domain) if one.validator is Validator.ETAG}
        await look_again(db, site, domain, rounds=1, edits=True)
        assert await is_up_to_date(db, site, domain)
