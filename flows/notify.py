"""notify: tell those who have asked for it what has changed."""

from datetime import timedelta

from prefect import State, flow, get_run_logger
from prefect.states import Completed

from crawler.app.database import open_database_of
from crawler.app.delivery.notifications import Delivered, count_failing, deliver_due
from crawler.clock import Clock
from crawler.format.values import format_delivered, format_undelivered
from crawler.settings import settings
from flows.ending import says_why
from flows.form import instant
from flows.lease import show_markdown

NOT_ALL_TOLD = "NotAllTold"  # what automations may wait for: prefect.flow-run.NotAllTold
WITHIN = timedelta(minutes=4)  # the next run comes after five, and goes on with what a slow target has left


@flow(name="notify", flow_run_name="notify", persist_result=False)
@says_why
async def notify(at: str = "") -> State[dict[str, int]]:
    """Tell what is due to those who have asked for it: new changes, digests, what a target has not taken before.

    A run in which somebody was not told ends in the state NotAllTold, which is a kind of Completed: all else was done,
    and the next runs try again.

    Args:
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    chosen = settings()
    async with open_database_of(chosen) as db:
        done = await deliver_due(db, clock=Clock.at(instant(at)), within=WITHIN)
        await show_told(done)
        waiting = await count_failing(db)
    counts = {"changes": done.changes, "messages": done.messages, "failed": len(done.untold)}
    if done.untold:
        return Completed(name=NOT_ALL_TOLD, message=" ".join(untold_sentences(done)), data=counts)
    left = f" {waiting} that failed before are left alone for a while." if waiting else ""
    return Completed(message=f"{told_sentence(done)}{left}", data=counts)


async def show_told(done: Delivered) -> None:
    """Say in the run's log and by an artifact what was sent. No address is shown."""
    log = get_run_logger()
    if done.messages:
        log.info("%s", format_delivered(done.changes, done.messages))
    for number, why in done.untold.items():
        log.warning("%s", format_undelivered(number, why))
    if done.messages or done.untold:
        shown = "\n\n".join([told_sentence(done), *untold_sentences(done)])
        await show_markdown(shown, key="notify-result", description="What was told")


def told_sentence(done: Delivered) -> str:
    """How much was told."""
    return f"{format_delivered(done.changes, done.messages)}."


def untold_sentences(done: Delivered) -> list[str]:
    """Who was not told, and why."""
    return [f"S{format_undelivered(number, why)[1:]}." for number, why in done.untold.items()]
