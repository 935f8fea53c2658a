"""Seven servers with wrong validators: the revisits needed to detect each, to catch changes, and to trust it again."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from crawler.core.domain import Domain
from crawler.core.validator_trust import SENT_VALIDATORS, Validator
from crawler.format.trust import format_trust
from crawler.store.database import Database
from crawler.store.learned.credibility import list_trust_rows
from tests.engine.crawls import DAY, recrawl
from tests.engine.liars import (
    Asked,
    Liar,
    Policy,
    Words,
    always_304,
    by,
    constant_etag,
    date_of_the_request,
    equal_length,
    etag_of_the_minute,
    etag_per_replica_alone,
    frozen_date,
    honest,
    is_up_to_date,
    look_again,
    served,
    standing,
)

NEW, TRUSTED = 20, 200  # revisits within which wrong validators are found, for a new domain and for a trusted one
MENDED = 60  # revisits of changing pages within which a corrected server is trusted again
PAGES = 4  # of a new domain
PAGES_OF_A_KNOWN_ONE = 10
HONEST_EDITS, HONEST_REST = 1, 11  # rounds in which its pages change, and in which they do not


def honest_date(site: Liar, asked: Asked) -> Words:
    return by(asked, None, site.edited)


def honest_etag(site: Liar, asked: Asked) -> Words:
    return by(asked, site.tag(asked.path), None)


@dataclass(frozen=True, slots=True)
class Lie:
    """What a server sends, what a correct one would send instead, and how reports distinguish them.

    edits: whether its pages change while it is detected.
    """

    say: Policy
    truth: Policy
    kind: Validator
    found: str
    edits: bool


OF_EACH_KIND = {
    "a frozen Last-Modified",
    "304 to everything",
}  # one with dates and one with tags; the others take as long
LIES: Mapping[str, Lie] = {
    "an ETag that stays while the body changes": Lie(constant_etag, honest_etag, Validator.ETAG, "lies", edits=True),
    "an ETag of each replica": Lie(etag_per_replica_alone, honest_etag, Validator.ETAG, "flaps", edits=False),
    "Last-Modified is now": Lie(date_of_the_request, honest_date, Validator.LAST_MODIFIED, "flaps", edits=False),
    "a frozen Last-Modified": Lie(frozen_date, honest_date, Validator.LAST_MODIFIED, "lies", edits=True),
    "an equal length of another body": Lie(equal_length, equal_length, Validator.LENGTH, "lies", edits=True),
    "304 to everything": Lie(always_304, honest, Validator.ETAG, "lies", edits=True),
    "an ETag of the minute": Lie(etag_of_the_minute, honest_etag, Validator.ETAG, "flaps", edits=False),
}
# test_honesty.py has these lies of a new domain, too.
AS_IN_HONESTY = {"an ETag that stays while the body changes", "an ETag of each replica", "a frozen Last-Modified"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name in AS_IN_HONESTY else []) for name in LIES]
)
async def test_a_lie_of_a_new_domain_is_found_within_20_revisits_and_told_and_the_change_is_caught(
    db: Database, name: str
) -> None:
    lie = LIES[name]
    async with served(db, lie.say) as (site, domain):
        await recrawl(db, domain, at=site.at)
        revisits = await revisits_until(db, site, domain, lie, lie.found, most=NEW)
        print(f"{name}: found after {revisits} revisits of a new domain")  # noqa: T201  shown with -rP
        await look_again(db, site, domain, rounds=1, edits=True)
        await look_again(db, site, domain, rounds=1, edits=False)

        assert await is_up_to_date(db, site, domain)
        assert await is_told(db, domain, lie)


@pytest.mark.soak
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OF_EACH_KIND else pytest.mark.soak) for name in LIES]
)
async def test_a_lie_of_a_trusted_domain_is_found_within_200_revisits_and_honest_challenges_restore_its_trust(
    db: Database, name: str
) -> None:
    lie = LIES[name]
    async with served(db, lie.truth, pages=PAGES_OF_A_KNOWN_ONE) as (site, domain):
        site.is_large = site.grows = lie.kind is Validator.LENGTH
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=HONEST_EDITS, edits=True)
        site.bodies = 0
        await look_again(db, site, domain, rounds=HONEST_REST, edits=False)
        assert site.bodies < HONEST_REST * PAGES_OF_A_KNOWN_ONE / 2  # its validators are trusted
        assert (await standing(db, domain, lie.kind)).rating == "honest"
        assert not await is_told(db, domain, lie)

        site.say, site.grows = lie.say, False
        revisits = await revisits_until(db, site, domain, lie, lie.found, most=TRUSTED)
        await look_again(db, site, domain, rounds=1, edits=True)
        await look_again(db, site, domain, rounds=1, edits=False)
        assert await is_up_to_date(db, site, domain)
        assert await is_told(db, domain, lie)

        site.say, site.grows = lie.truth, lie.kind is Validator.LENGTH
        restored = await revisits_until(db, site, domain, lie, "honest", most=MENDED)
        print(f"{name}: found after {revisits} revisits of a trusted domain, and trusted again after {restored}")  # noqa: T201  shown with -rP
        assert not await is_told(db, domain, lie)
        await look_again(db, site, domain, rounds=2, edits=True)
        site.bodies = 0
        await look_again(db, site, domain, rounds=2, edits=False)
        # Twice as many, and the first page. A HEAD that usually found differences lately is not sent.
        assert site.bodies <= PAGES_OF_A_KNOWN_ONE or lie.kind is Validator.LENGTH


async def revisits_until(db: Database, site: Liar, domain: Domain, lie: Lie, said: str, *, most: int) -> int:
    """Return after how many revisits, in rounds of all pages, the report says this about the lie's group and kind."""
    revisits = 0
    while revisits < most:
        site.at += DAY
        if lie.edits:
            site.edit(site.at - DAY / 3)
        await recrawl(db, domain, at=site.at)
        revisits += site.pages
        found = [
            one for one in await list_trust_rows(db, domain) if (one.template, one.validator) == ("/page/*", lie.kind)
        ]
        if [one.rating for one in found] == [said]:
            return revisits
    pytest.fail(f"not {said} after {revisits} revisits")


async def is_told(db: Database, domain: Domain, lie: Lie) -> bool:
    """Return whether reports show the fault: the view, and the command if such validators would be sent."""
    found = await list_trust_rows(db, domain)
    by_view = any((one.template, one.validator, one.rating) == ("/page/*", lie.kind, lie.found) for one in found)
    told = f"of /page/* {lie.found}" in format_trust(found)
    return by_view and (told or lie.kind not in SENT_VALIDATORS)
