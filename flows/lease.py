"""One lease as one Prefect task run, with its progress to look at and an event at its end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from prefect import task
from prefect.artifacts import acreate_markdown_artifact, acreate_progress_artifact, aupdate_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.events import emit_event
from prefect.settings import PREFECT_API_URL

from crawler.app.crawl import CrawlStats, Lease, LeaseResult

log = logging.getLogger("recrawl.flows")
T = TypeVar("T")

LEASE_ENDED = "recrawl.lease.ended"
SHOW_EVERY = timedelta(seconds=2)  # each update is a call of the server
FOUND_WITHIN = timedelta(seconds=5)  # a server on a busy machine accepts a connection long before it answers
HEARD_WITHIN = timedelta(seconds=30)  # Prefect's client itself tries for more than a minute while no server answers


class Progress:
    """The progress of one lease for its artifact: looks done of those that are known to be waiting."""

    def __init__(self, *, pending: int) -> None:
        self._pending = pending
        self.stats = CrawlStats()

    @property
    def percent(self) -> float:
        """Looks done, in percent; pages found on the way come on top of those that were waiting at first."""
        return min(100.0 * self.stats.looks / max(self._pending + self.stats.new, self.stats.looks, 1), 100.0)

    async def keep_showing(self, made: "asyncio.Task[UUID | None]") -> None:
        """Bring the artifact up to date now and then, until cancelled. made: makes it; None where nobody listens."""
        artifact = await asyncio.shield(made)
        while artifact is not None:
            await asyncio.sleep(SHOW_EVERY.total_seconds())
            await if_heard(aupdate_progress_artifact(artifact, progress=self.percent))


async def if_heard(showing: Awaitable[T]) -> T | None:
    """Show something in Prefect, or go on without: while its server is down crawling goes on, its results are safe."""
    try:
        async with asyncio.timeout(HEARD_WITHIN.total_seconds()):
            return await showing
    except Exception as error:  # noqa: BLE001  whatever ails Prefect, it is not the crawl's affair
        log.warning("prefect.silent", extra={"error": repr(error)})
        return None


async def show_markdown(text: str, *, key: str, description: str) -> None:
    """Show a text as an artifact of this run. key: of all its versions."""
    await if_heard(acreate_markdown_artifact(text, key=key, description=description))


def emit(event: str, name: str, payload: dict[str, Any], *, kind: str = "domain") -> None:
    """Emit an event for automations, about a domain or another kind of thing."""
    resource = {"prefect.resource.id": f"recrawl.{kind}.{name}", "prefect.resource.name": name}
    emit_event(event=event, resource=resource, payload=payload)


@task(cache_policy=NO_CACHE, persist_result=False)
async def crawl_lease(domain: str, walk: Callable[[], Awaitable[LeaseResult]], progress: Progress) -> LeaseResult:
    """Crawl one lease. The domain is the first argument, so that the run shows it.

    The crawl waits for no answer of the server: while that is away the lease would be over before anything was asked.
    """
    creating = acreate_progress_artifact(0.0, description=f"{domain}: pages looked at")
    made = asyncio.create_task(if_heard(creating), name=f"artifact-{domain}")
    showing = asyncio.create_task(progress.keep_showing(made), name=f"progress-{domain}")
    try:
        walked = await walk()
    except BaseException:
        made.cancel()
        raise
    finally:
        showing.cancel()
    artifact = await made
    if artifact is not None:
        await if_heard(aupdate_progress_artifact(artifact, progress=100.0))
    emit(LEASE_ENDED, domain, walked.stats.as_dict() | {"hold": walked.hold.reason if walked.hold else None})
    return walked


async def is_there() -> bool:
    """Whether somebody listens where the Prefect server is; true where none is named."""
    named = urlsplit(PREFECT_API_URL.value() or "")
    if named.hostname is None:
        return True
    try:
        async with asyncio.timeout(FOUND_WITHIN.total_seconds()):
            port = named.port or (443 if named.scheme == "https" else 80)
            _, writer = await asyncio.open_connection(named.hostname, port)
    except OSError:
        return False
    writer.close()
    return True


async def as_task(lease: Lease, walk: Callable[[], Awaitable[LeaseResult]], progress: Progress) -> LeaseResult:
    """Crawl the lease as a task run that carries its domain in name and tags.

    While the server is away it is crawled without one: a task run with tags begins by asking the server, for so long
    that the lease would be over.
    """
    if not await is_there():
        log.warning("prefect.away", extra={"domain": lease.domain.authority})
        return await walk()
    name = lease.domain.authority
    run = crawl_lease.with_options(task_run_name=name, tags=[f"domain:{name}"])
    return await run(name, walk, progress)
