"""Once for each version: the newest schema, and the deployments on the Prefect server. Twice does no harm."""

import asyncio
import os
import time

from crawler.errors import StackFailed
from crawler.runtime.environment import Api, client_environment
from crawler.runtime.parts import Report
from crawler.runtime.private import private_folder
from crawler.runtime.service.needs import api_of, database_of, server_problem, told_as, wait_until_usable
from crawler.runtime.up import DEPLOYMENTS, offer
from crawler.settings import Settings
from crawler.store.database import prepare, schema_of, silence_of, upgrade


def deploy(settings: Settings, *, may_upgrade: bool, patience_seconds: float, report: Report) -> int:
    """Register the deployments and the work pool; gives how many deployments were new or different.

    may_upgrade: migrate the database first, whatever it holds; else only an empty one is.  patience_seconds: how long
    database and server are waited for.  Raises StackFailed where one of them stays silent.
    """
    url, api = database_of(settings), api_of(settings)
    deadline = time.monotonic() + patience_seconds

    def is_too_late(seconds: float) -> bool:
        time.sleep(min(seconds, max(deadline - time.monotonic(), 0)))
        return time.monotonic() >= deadline

    def silence() -> str:
        return silence_of(url) or server_problem(api)

    if not wait_until_usable(silence, wait=is_too_late, report=report):
        raise StackFailed(f"{silence()}: not within {patience_seconds:g} s")
    if may_upgrade:
        report(f"Database: {schema_of(url).value}")
        upgrade(url)
    else:
        prepare(url, may_upgrade=False)
    home = settings.home.resolve()
    private_folder(home, "prefect")
    os.environ.update(client_environment(home, api) | told_as(settings))
    return asyncio.run(_registered(api, url))


async def _registered(api: Api, url: str) -> int:
    from crawler.runtime.prefect.api import ensure_deployments  # noqa: PLC0415  it reads the environment now

    registered = await ensure_deployments(api, DEPLOYMENTS, is_ours=False)
    await offer(api, url)
    return registered
