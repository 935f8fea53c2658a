"""Starting a deployment's run on the stack, and watching it to its end."""

import asyncio
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from crawler.errors import StackFailed
from crawler.local.environment import client_environment
from crawler.local.parts import Stack

POLL = timedelta(seconds=0.5)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a deployment, as it stood when it was looked at last."""

    id: UUID
    name: str
    state: str
    url: str

    @property
    def has_completed(self) -> bool:
        return self.state == "Completed"


def start_recrawl(stack: Stack, *, domain: str, prefix: str) -> str:
    """Let the worker look at all pages whose URLs begin so; where to watch it. StackFailed."""
    return start_run(stack, "recrawl/recrawl", {"domain": domain, "prefix": prefix}).url


def start_run(stack: Stack, deployment: str, parameters: dict[str, Any]) -> Run:
    """Start a run and leave it to the worker. deployment: flow/name, as in the user interface. StackFailed."""
    return asyncio.run(_start(stack, deployment, parameters))


def finish_run(stack: Stack, run: Run, *, within: timedelta) -> Run:
    """The run when it has ended. StackFailed if it has not within that time."""
    return asyncio.run(_finish(stack, run, within=within))


async def _start(stack: Stack, deployment: str, parameters: dict[str, Any]) -> Run:
    os.environ.update(client_environment(stack.home, stack.api))
    from prefect.exceptions import ObjectNotFound

    from crawler.local.prefect import client_of

    async with client_of(stack.api) as client:
        try:
            found = await client.read_deployment_by_name(deployment)
        except ObjectNotFound as error:
            raise StackFailed(f"no deployment {deployment} at {stack.api_url}: recrawl up registers it") from error
        run = await client.create_flow_run_from_deployment(found.id, parameters=parameters)
        return Run(run.id, run.name, str(run.state_name), f"{stack.ui_url}/runs/flow-run/{run.id}")


async def _finish(stack: Stack, run: Run, *, within: timedelta) -> Run:
    from crawler.local.prefect import client_of

    try:
        async with asyncio.timeout(within.total_seconds()), client_of(stack.api) as client:
            while True:
                now = await client.read_flow_run(run.id)
                if now.state is not None and now.state.is_final():
                    return Run(run.id, now.name, str(now.state_name), run.url)
                await asyncio.sleep(POLL.total_seconds())
    except TimeoutError as error:
        raise StackFailed(f"the run {run.name} has not ended after {within}: see {run.url}") from error
