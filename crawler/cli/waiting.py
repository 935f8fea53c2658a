"""Say why a domain is not being fetched, and what can be done about it."""

from collections.abc import Collection
from datetime import datetime

from crawler.app import Wait, WaitReason, waiting_domains, why_not_now
from crawler.cli.reasons import in_words
from crawler.cli.values import counted, shown_when
from crawler.core.domain import Domain
from crawler.settings import settings
from crawler.store.database import Database

SENTENCES = {
    WaitReason.PAUSED: "is paused; to go on: recrawl domains resume {name}",
    WaitReason.LEASED: "is being crawled by {detail}",
    WaitReason.CLOCK_BEHIND: (
        "was last visited at {until}, which is later than now, so nothing is fetched before then; "
        "if that time was wrong: recrawl domains reset-clock {name}"
    ),
    WaitReason.SUSPENDED: "is suspended until {until}: {detail}",
    WaitReason.OUTSIDE_HOURS: "is outside its crawl hours until {until}",
    WaitReason.BUDGET_SPENT: (
        "has spent its daily budget of {detail} requests and goes on at {until}; "
        "to go on sooner: recrawl domains set {name} --budget N"
    ),
    WaitReason.BYTES_SPENT: "has spent its daily byte budget and goes on at {until}",
    WaitReason.SHARED_BUDGET_SPENT: (
        "waits until {until}: the daily budget of all domains together is spent (RECRAWL_BUDGET_PER_DAY)"
    ),
    WaitReason.ADDRESS_BUSY: "shares its address with a domain that is being crawled",
    WaitReason.PACED: (
        "spreads its daily budget over the day and fetches its next page at {until}; to fetch now: recrawl crawl {name}"
    ),
    WaitReason.NOT_DUE: "has nothing due before {until}",
    WaitReason.NO_WORKER: "can be crawled now, but no worker is running: recrawl up, or recrawl crawl {name}",
}
WITHOUT_END = {
    WaitReason.BUDGET_SPENT: "has a budget of 0 requests a day; to change it: recrawl domains set {name} --budget N",
    WaitReason.NOT_DUE: "has no page that will be due",
}


async def domain_wait(db: Database, domain: Domain, *, at: datetime) -> str:
    """Return `format_wait` of a domain at an instant."""
    return format_wait(await why_not_now(db, domain, settings(), at=at), domain, now=at)


async def page_wait(db: Database, domain: Domain, *, at: datetime) -> str:
    """Return what `domain_wait` does, for the domain of a page that says itself when it is due."""
    wait = await why_not_now(db, domain, settings(), at=at)
    is_about_due = wait is not None and wait.reason is WaitReason.NOT_DUE
    return "" if is_about_due else format_wait(wait, domain, now=at)


async def waiting_lines(
    db: Database, *, at: datetime, only: Collection[Domain] | None = None, requested: bool = False
) -> list[str]:
    """Return a sentence for each domain in which something waits, as `waiting_domains` finds them."""
    waits = await waiting_domains(db, settings(), at=at, only=only, requested=requested)
    return [f"{domain.authority} {format_wait(wait, domain, now=at)}" for domain, wait in waits]


def format_wait(wait: Wait | None, domain: Domain, *, now: datetime) -> str:
    """Return the end of a sentence that begins with the name of the domain; empty where nothing holds it up."""
    if wait is None:
        return ""
    sentence = WITHOUT_END.get(wait.reason) if wait.until is None else None
    detail = in_words(wait.detail) if wait.reason is WaitReason.SUSPENDED else wait.detail
    said = (sentence or SENTENCES[wait.reason]).format(
        name=domain.authority, until=shown_when(wait.until, now=now), detail=detail
    )
    return f"{said}; {counted(wait.pages, 'requested page')} waiting" if wait.pages else said
