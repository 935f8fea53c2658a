"""Try a page: fetch it once, record nothing, and show what of it would be compared and what would be news."""

from dataclasses import replace
from datetime import datetime

from crawler.app.database import Database
from crawler.app.registration import domain_named, require_not_before_last_visit, url_of
from crawler.app.status import format_wait, why_not_now
from crawler.clock import Clock
from crawler.core.change.change import Change
from crawler.core.change.difference import Difference, difference
from crawler.core.change.explain import ExplainedBlock, Why, explain_blocks, why_no_news
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched, Unreached
from crawler.core.http.urls import Url
from crawler.core.rendering.outcome import RenderChoice
from crawler.engine.resources import open_resources
from crawler.engine.try_page import TryResult, TryWay, try_page
from crawler.format.reasons import format_reason
from crawler.plugins import load
from crawler.runtime.secrets import secrets_of
from crawler.store.report import target_of


async def try_url(db: Database, text: str, *, how: TryWay, at: datetime | None) -> TryResult:
    """Try the page of a registered domain that a user typed. at: knowledge time; None for now. Raises BadInput."""
    url = url_of(text)
    load(db.settings.plugins)
    domain = await domain_named(db, text)
    await require_not_before_last_visit(db, [domain], at)
    return await try_url_of(db, domain, url, how=how, clock=Clock.at(at))


async def try_url_of(db: Database, domain: Domain, url: Url, *, how: TryWay, clock: Clock) -> TryResult:
    """Try a page of a domain; if it may not be fetched now, `refusal` says why in words."""
    home = domain.scope(max_depth=db.settings.max_depth).home(url)
    wait = await why_not_now(db, domain, at=clock.now())
    if wait is not None and wait.reason.is_obstacle:
        refusal = f"{domain.authority} {format_wait(wait, domain, now=clock.now())}"
        return TryResult(await target_of(db, domain, home), clock.now(), refusal=refusal)
    async with open_resources(db.settings, find_secret=secrets_of(db.settings)) as resources:
        seen = await try_page(db, resources, domain, home, settings=db.settings, clock=clock, how=how)
    return replace(seen, refusal=format_reason(seen.refusal))


def list_differences(seen: TryResult) -> list[tuple[Difference, Why]]:
    """Return what differs from the last version, one by one, each with the reason if it is no news."""
    if seen.baseline is None or seen.parsed is None:
        return []
    found = difference(seen.baseline.blocks, seen.parsed.blocks, seen.mask.volatile)
    then, now = seen.baseline.at, seen.at
    return [(each, why_no_news(each, seen.mask, then=then, now=now)) for each in found.apart]


def list_volatile(seen: TryResult) -> list[Difference]:
    """Return what differed between this fetch and the next one, seconds later."""
    if seen.parsed is None or not seen.second_fetches:
        return []
    return difference(seen.parsed.blocks, seen.second_fetches[0], seen.before.volatile).apart


def list_blocks(seen: TryResult) -> list[ExplainedBlock]:
    """Return the blocks of the page, each with what of it is compared, and why not the rest."""
    if seen.parsed is None:
        return []
    return explain_blocks(seen.whole, seen.parsed.blocks, seen.mask, view=seen.view, apart=seen.apart)
