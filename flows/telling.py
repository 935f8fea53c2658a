"""Telling those who have asked for it what has changed: what a run of notify does, and a crawl at its end."""

from datetime import UTC, datetime, timedelta

from prefect import get_run_logger
from prefect.artifacts import acreate_markdown_artifact

from crawler.clock import Clock
from crawler.format.values import format_count
from crawler.notify import Delivered, deliver, open_context
from crawler.plugins import load
from crawler.runtime.keys.entrance import command_seal
from crawler.runtime.pages import pages_origin
from crawler.runtime.secrets import secrets_of
from crawler.settings import Settings
from crawler.store import subscriptions
from crawler.store.database import Database
from flows.lease import if_heard


async def tell(db: Database, chosen: Settings, *, at: datetime | None, within: timedelta) -> Delivered:
    """Tell what is due, and say in the run's log and by an artifact what came of it. No address is shown."""
    if not await subscriptions.every(db):
        return Delivered()
    async with open_context(
        db,
        find_secret=secrets_of(chosen),
        user_agent=chosen.user_agent,
        seal=command_seal(chosen.home.resolve()),
        origin=pages_origin(chosen.home.resolve()),
        now=Clock.at(at or datetime.now(UTC)).now,
        plugins=load(chosen.plugins),
    ) as context:
        done = await deliver(context, within=within)
    log = get_run_logger()
    if done.messages:
        log.info("%d changes told in %d messages", done.changes, done.messages)
    for number, why in done.untold.items():
        log.warning("subscription %d was not told: %s", number, why)
    if done.messages or done.untold:
        await if_heard(acreate_markdown_artifact(markdown(done), key="notify-result", description="What was told"))
    return done


def markdown(done: Delivered) -> str:
    """What was told, as a person reads it."""
    return "\n".join([told_sentence(done), *(f"\n{each}" for each in untold_sentences(done))])


def told_sentence(done: Delivered) -> str:
    """How much was told."""
    return f"{format_count(done.changes, 'change')} told in {format_count(done.messages, 'message')}."


def untold_sentences(done: Delivered) -> list[str]:
    """Who was not told, and why."""
    return [f"Subscription {number} was not told: {why}." for number, why in done.untold.items()]
