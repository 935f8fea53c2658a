"""A lease as a Prefect task run, with a progress artifact and an event at its end."""

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

UPDATE_INTERVAL = timedelta(seconds=2)  # each update is a request to the Prefect server
CONNECT_TIMEOUT = timedelta(seconds=5)  # even on a busy machine, a running server accepts connections sooner
PREFECT_TIMEOUT = timedelta(seconds=30)  # Prefect's client would retry for more than a minute


class Progress:
    """The progress of one lease, for its artifact. pending: the number of pages that are due at the start."""

    def __init__(self, *, pending: int) -> None:
        self._pending = pending
        self.stats = CrawlStats()

    @property
    def percent(self) -> float:
        """Return the finished visits in percent of the pending pages and those found during the crawl."""
        return min(100.0 * self.stats.visits / max(self._pending + self.stats.new_pages, self.stats.visits, 1), 100.0)

    async def keep_updating(self, creation: "asyncio.Task[UUID | None]") -> None:
        """Update the artifact at intervals, until canceled. creation: creates it; returns None without a server."""
        artifact = await asyncio.shield(creation)
        while artifact is not None:
            await asyncio.sleep(UPDATE_INTERVAL.total_seconds())
            await try_prefect_call(aupdate_progress_artifact(artifact, progress=self.percent))


async def try_prefect_call(call: Awaitable[T]) -> T | None:
    """Await a call of Prefect; return None if it fails. Crawling must continue while the Prefect server is down."""
    try:
        async with asyncio.timeout(PREFECT_TIMEOUT.total_seconds()):
            return await call
    except Exception as error:  # noqa: BLE001  no failure of Prefect may end the crawl
        log.warning("prefect.call_failed", extra={"error": repr(error)})
        return None


async def show_markdown(text: str, *, key: str, description: str) -> None:
    """Show a text as an artifact of this run. key: the artifact's key, under which Prefect keeps all versions."""
    await try_prefect_call(acreate_markdown_artifact(text, key=key, description=description))


def emit(event: str, name: str, payload: dict[str, Any], *, kind: str = "domain") -> None:
    """Emit an event for automations. name: the resource it is about.  kind: the kind of resource."""
    resource = {"prefect.resource.id": f"recrawl.{kind}.{name}", "prefect.resource.name": name}
    emit_event(event=event, resource=resource, payload=payload)


@task(cache_policy=NO_CACHE, persist_result=False)
async def crawl_lease(domain: str, crawl_it: Callable[[], Awaitable[LeaseResult]], progress: Progress) -> LeaseResult:
    """Crawl one lease. domain: its name, which the Prefect UI shows as a parameter.  crawl_it: crawls the lease.

    The crawl does not wait for the Prefect server, because a wait for one that is down could outlast the lease.
    """
    artifact_call = acreate_progress_artifact(0.0, description=f"{domain}: visited pages")
    creation = asyncio.create_task(try_prefect_call(artifact_call), name=f"artifact-{domain}")
    updating = asyncio.create_task(progress.keep_updating(creation), name=f"progress-{domain}")
    try:
        result = await crawl_it()
    except BaseException:
        creation.cancel()
        raise
    finally:
        updating.cancel()
    artifact = await creation
    if artifact is not None:
        await try_prefect_call(aupdate_progress_artifact(artifact, progress=100.0))
    suspension = result.suspension.reason if result.suspension else None
    emit("recrawl.lease.ended", domain, result.stats.as_dict() | {"suspension": suspension})
    return result


async def is_prefect_reachable() -> bool:
    """Return whether the Prefect server accepts connections; true if no server is configured."""
    api_url = urlsplit(PREFECT_API_URL.value() or "")
    if api_url.hostname is None:
        return True
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
            port = api_url.port or (443 if api_url.scheme == "https" else 80)
            _, writer = await asyncio.open_connection(api_url.hostname, port)
    except OSError:
        return False
    writer.close()
    return True


async def run_as_task(lease: Lease, crawl_it: Callable[[], Awaitable[LeaseResult]], progress: Progress) -> LeaseResult:
    """Crawl the lease as a task run with the domain in its name and tags.

    While the Prefect server is down, crawl without a task run: a task run with tags first requests the server, and
    would retry until the lease is over.
    """
    if not await is_prefect_reachable():
        log.warning("prefect.unreachable", extra={"domain": lease.domain.authority})
        return await crawl_it()
    name = lease.domain.authority
    run = crawl_lease.with_options(task_run_name=name, tags=[f"domain:{name}"])
    return await run(name, crawl_it, progress)
