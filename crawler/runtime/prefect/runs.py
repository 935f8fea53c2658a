"""Start a run of a Prefect deployment."""

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


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a deployment. url: its page in the Prefect UI, or a redirect to that page."""

    id: UUID
    name: str
    url: str


def start_run(stack: Stack, deployment: str, parameters: dict[str, Any]) -> Run:
    """Start a run, which the worker executes. deployment: flow/name, as in the Prefect UI. Raises StackFailed."""
    if stack.server is None:  # an external server may need keys and headers that only Prefect's client knows
        run = asyncio.run(_start_by_client(stack, deployment, parameters))
    else:
        run = _start_by_http(stack.api, deployment, parameters)
    if run is None:
        raise StackFailed(f"{stack.api.url} has no deployment {deployment}: run recrawl up to register it")
    return run


def _start_by_http(api: PrefectApi, deployment: str, parameters: dict[str, Any]) -> Run | None:
    """Start a run with two HTTP calls, because Prefect's client takes a second and 80 MB in the web UI."""
    registered = _call_api(api, f"/deployments/name/{deployment}")
    run = registered and _call_api(api, f"/deployments/{registered['id']}/create_flow_run", {"parameters": parameters})
    # The redirect page of host_check.py, which only the local server has.
    return Run(UUID(run["id"]), run["name"], f"{api.ui_url}{WATCH_PATH}{run['id']}") if run else None


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirects, so that the auth string is only sent to the verified address."""

    def redirect_request(self, *_: object) -> None:
        return None


def _call_api(api: PrefectApi, path: str, body: dict[str, Any] | None = None) -> Any:
    """Call the API with GET, or with POST if there is a body. Return None for status 404. Raises StackFailed."""
    auth_headers = {"authorization": f"Basic {b64encode(api.auth.encode()).decode()}"} if api.auth is not None else {}
    request = Request(  # noqa: S310  this machine
        f"{api.url}{path}",
        None if body is None else json.dumps(body).encode(),
        {"content-type": "application/json", **auth_headers},
    )
    try:
        with build_opener(ProxyHandler({}), _NoRedirects()).open(request, timeout=RESPONSE_SECONDS) as response:
            return json.loads(response.read(1 << 20))
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise StackFailed(f"the Prefect server rejected {path}: {error.code} {error.reason}") from error
    except (OSError, ValueError) as error:
        raise StackFailed(f"the Prefect server at {api.url} does not respond: {error}") from error


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
