"""Telling those who have asked for it what has changed: what a run of notify does, and a crawl at its end."""

from prefect import get_run_logger
from prefect.artifacts import acreate_markdown_artifact

from crawler.app.delivery.notifications import Delivered
from crawler.format.deliveries import format_delivered, format_undelivered
from flows.lease import if_heard


async def show_told(done: Delivered) -> None:
    """Say in the run's log and by an artifact what was sent. No address is shown."""
    log = get_run_logger()
    if done.messages:
        log.info("%s", format_delivered(done.changes, done.messages))
    for number, why in done.untold.items():
        log.warning("%s", format_undelivered(number, why))
    if done.messages or done.untold:
        shown = "\n\n".join([told_sentence(done), *untold_sentences(done)])
        await if_heard(acreate_markdown_artifact(shown, key="notify-result", description="What was told"))


def told_sentence(done: Delivered) -> str:
    """How much was told."""
    return f"{format_delivered(done.changes, done.messages)}."


def untold_sentences(done: Delivered) -> list[str]:
    """Who was not told, and why."""
    return [f"S{format_undelivered(number, why)[1:]}." for number, why in done.untold.items()]
