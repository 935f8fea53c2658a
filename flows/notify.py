"""The flow notify: send due notifications."""

from datetime import timedelta

from prefect import State, flow, get_run_logger
from prefect.states import Completed

from crawler.app.database import open_configured_database
from crawler.app.delivery.notifications import DeliveryStats, count_failing, deliver_due
from crawler.clock import Clock
from crawler.format.values import format_count, format_delivered, format_undelivered
from crawler.settings import get_settings
from flows.form import parse_instant
from flows.lease import show_markdown
from flows.run_ending import report_errors

TIME_LIMIT = timedelta(minutes=4)  # the next run starts after five minutes, and sends what is left


@flow(name="notify", flow_run_name="notify", persist_result=False)
@report_errors
async def notify(at: str = "") -> State[dict[str, int]]:
    """Send the due notifications: new changes, digests, and messages that failed before.

    A run with failed messages ends in the state NotAllDelivered, of the type Completed: all others were sent, and the
    next runs try again.

    Args:
        at: Act as if it were this time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    chosen = get_settings()
    async with open_configured_database(chosen) as db:
        stats = await deliver_due(db, clock=Clock.from_instant(parse_instant(at)), max_duration=TIME_LIMIT)
        await show_delivery(stats)
        waiting = await count_failing(db)
    counts = {"changes": stats.changes, "messages": stats.messages, "failed": len(stats.undelivered)}
    if stats.undelivered:  # the name of the state is for automations: prefect.flow-run.NotAllDelivered
        return Completed(name="NotAllDelivered", message=" ".join(describe_undelivered(stats)), data=counts)
    message = f"{format_delivered(stats.changes, stats.messages)}."
    if waiting:
        message += f" {format_count(waiting, 'subscription')} that failed before will be tried later."
    return Completed(message=message, data=counts)


async def show_delivery(stats: DeliveryStats) -> None:
    """Show in the run's log and an artifact what was sent, without addresses."""
    log = get_run_logger()
    if stats.messages:
        log.info("%s", format_delivered(stats.changes, stats.messages))
    for number, why in stats.undelivered.items():
        log.warning("%s", format_undelivered(number, why))
    if stats.messages or stats.undelivered:
        summary = "\n\n".join([f"{format_delivered(stats.changes, stats.messages)}.", *describe_undelivered(stats)])
        await show_markdown(summary, key="notify-result", description="Sent notifications")


def describe_undelivered(stats: DeliveryStats) -> list[str]:
    """Return a sentence for each subscription whose delivery failed."""
    return [f"S{format_undelivered(number, why)[1:]}." for number, why in stats.undelivered.items()]
