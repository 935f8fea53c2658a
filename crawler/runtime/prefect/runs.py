"""Starting a run of a deployment on the stack."""

import asyncio
import json
import os
from base64 import b64encode
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener
from uuid import UUID

from crawler.errors import StackFailed
from crawler.runtime.environment import WATCH_PATH, PrefectApi, build_client_environment
from crawler.runtime.stack import Stack

RESPONSE_SECONDS = 30
MAX_RESPONSE_BYTES = 1 << 20  # of an answer


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a deployment. url: where it can be watched."""

    id: UUID
    name: str
    url: str


def start_run(stack: Stack, deployment: str, parameters: dict[str, Any]) -> Run:
    """Start a run and leave it to the worker. deployment: flow/name, as in the user interface. StackFailed."""
    if stack.server is None:  # it may want keys and headers that only Prefect's client knows
        run = asyncio.run(_start_by_client(stack, deployment, parameters))
    else:
        run = _start_by_http(stack.api, deployment, parameters)
    if run is None:
        raise StackFailed(f"no deployment {deployment} at {stack.api.url}: recrawl up registers it")
    return run


def _start_by_http(api: PrefectApi, deployment: str, parameters: dict[str, Any]) -> Run | None:
    """By two calls to our own server: Prefect's client takes a second and 80 MB, which shown pages would keep."""
    registered = _call_api(api, f"/deployments/name/{deployment}")
    run = registered and _call_api(api, f"/deployments/{registered['id']}/create_flow_run", {"parameters": parameters})
    # By the way to it on a server of ours: host_check.py.
    return Run(UUID(run["id"]), run["name"], f"{api.ui_url}{WATCH_PATH}{run['id']}") if run else None


class _NoRedirects(HTTPRedirectHandler):
    """The auth string goes to the address that has proved itself, and to no other."""

    def redirect_request(self, *_: object) -> None:
        return None


def _call_api(api: PrefectApi, path: str, body: dict[str, Any] | None = None) -> Any:
    """What one call of the API gives.

    GET without a body, else POST; None for what is not there. StackFailed.
    """
    auth_headers = {"authorization": f"Basic {b64encode(api.auth.encode()).decode()}"} if api.auth is not None else {}
    request = Request(  # noqa: S310  this machine
        f"{api.url}{path}",
        None if body is None else json.dumps(body).encode(),
        {"content-type": "application/json", **auth_headers},
    )
    try:
        with build_opener(ProxyHandler({}), _NoRedirects()).open(request, timeout=RESPONSE_SECONDS) as response:
            return json.loads(response.read(MAX_RESPONSE_BYTES))
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise StackFailed(f"the Prefect server refuses {path}: {error.code} {error.reason}") from error
    except (OSError, ValueError) as error:
        raise StackFailed(f"the Prefect server does not answer at {api.url}: {error}") from error


async def _start_by_client(stack: Stack, deployment: str, parameters: dict[str, Any]) -> Run | None:
    os.environ.update(build_client_environment(stack.home, stack.api))
    from prefect.exceptions import ObjectNotFound

    from crawler.runtime.prefect.api import open_client

    async with open_client(stack.api) as client:
        try:
            registered = await client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            return None
        run = await client.create_flow_run_from_deployment(registered.id, parameters=parameters)
        return Run(run.id, run.name, f"{stack.api.ui_url}/runs/flow-run/{run.id}")
