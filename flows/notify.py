"""notify: tell those who have asked for it what has changed."""

from datetime import timedelta

from prefect import State, flow
from prefect.states import Completed

from crawler.app.database import open_database_of
from crawler.app.delivery.notifications import count_failing, deliver_due
from crawler.clock import Clock
from crawler.settings import settings
from flows.ending import says_why
from flows.shift import instant
from flows.telling import show_told, told_sentence, untold_sentences

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
        done = await deliver_due(db, chosen, clock=Clock.at(instant(at)), within=WITHIN)
        await show_told(done)
        waiting = await count_failing(db)
    counts = {"changes": done.changes, "messages": done.messages, "failed": len(done.untold)}
    if done.untold:
        return Completed(name=NOT_ALL_TOLD, message=" ".join(untold_sentences(done)), data=counts)
    left = f" {waiting} that failed before are left alone for a while." if waiting else ""
    return Completed(message=f"{told_sentence(done)}{left}", data=counts)
