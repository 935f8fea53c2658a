"""A stack for kill tests: real Postgres, server and worker, with flows that only wait."""

import json
import re
import time
import urllib.request
from base64 import b64encode
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from crawler.runtime.environment import PrefectApi
from crawler.settings import Settings
from tests.patience import COSTLY_POLL_S, PATIENCE_S, until

STAGE = Path(__file__).parent / "deployments" / "prefect.yaml"
ENDED = {"Completed", "Failed", "Crashed", "Cancelled"}
RECORD = re.compile(r"^(?=\d\d:\d\d:\d\d\.\d+ \| )", re.MULTILINE)  # the start of a record in the server's log
FAULT = re.compile(r"Traceback|\w(Error|Exception)\b|\| (ERROR|CRITICAL)")


def settings_of(home: Path, **others: object) -> Settings:
    """Return the settings of a stack with its own Postgres and Prefect server."""
    unset = {"database_url": None, "PREFECT_API_URL": None, "PREFECT_API_AUTH_STRING": None}
    return Settings(home=home, **unset, **others)


def ask(api: PrefectApi, path: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
    """Call Prefect's API: GET without a body, POST with one."""
    with answer_to(api, path, body, headers) as response:
        return json.load(response)


def change(api: PrefectApi, path: str, body: dict[str, Any]) -> None:
    """Call Prefect's API with PATCH."""
    answer_to(api, path, body, {}, method="PATCH").close()


def answer_to(
    api: PrefectApi, path: str, body: dict[str, Any] | None, headers: dict[str, str], method: str | None = None
) -> HTTPResponse:
    data = None if body is None else json.dumps(body).encode()
    known = {"authorization": f"Basic {b64encode(api.auth.encode()).decode()}"} if api.auth is not None else {}
    given = {"content-type": "application/json", **known, **headers}
    request = urllib.request.Request(f"{api.url}{path}", data, given, method=method)
    response: HTTPResponse = urllib.request.urlopen(request, timeout=PATIENCE_S)
    return response


def server_words(home: Path) -> str:
    """Return the log of the running server since its start."""
    _, greeted, said = (home / "logs" / "prefect-server.log").read_text().rpartition("Prefect server: starting at")
    assert greeted
    return said


def complaints(home: Path) -> list[str]:
    """Return the records of errors in the log of the running server.

    Timeouts of queries and connections do not count, because a server on a busy machine retries them.
    """
    records = RECORD.split(server_words(home))
    return [each for each in records if FAULT.search(each) and "Timeout" not in each]


def start_run(api: PrefectApi, deployment: str, **parameters: object) -> str:
    """Start a run of flow/deployment as the UI does; return its id."""
    return order(api, deployment, {"parameters": parameters})


def order(api: PrefectApi, deployment: str, wish: dict[str, Any]) -> str:
    """Start a run of flow/deployment with any fields; return its id."""
    found = ask(api, f"/deployments/name/{deployment}")
    return str(ask(api, f"/deployments/{found['id']}/create_flow_run", wish)["id"])


def run_state(api: PrefectApi, run: str) -> str:
    return str(ask(api, f"/flow_runs/{run}")["state_name"])


def task_states(api: PrefectApi, run: str) -> list[str]:
    """Return the states of a run's tasks."""
    found = ask(api, "/task_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})
    return [str(each["state_name"]) for each in found]


def cancel_run(api: PrefectApi, run: str) -> None:
    """Cancel a run as the UI does, and wait for its end."""
    ask_to_cancel(api, run, again=False)
    asked_at = time.monotonic()

    def is_cancelled() -> bool:
        nonlocal asked_at
        state = run_state(api, run)
        if state == "Cancelling" and time.monotonic() - asked_at > 10:
            # A worker that reconnects to a restarted server may have missed it.
            ask_to_cancel(api, run, again=True)
            asked_at = time.monotonic()
        return state == "Cancelled"

    until(is_cancelled, poll_s=COSTLY_POLL_S)


def ask_to_cancel(api: PrefectApi, run: str, *, again: bool) -> None:
    wish = {"state": {"type": "CANCELLING", "name": "Cancelling"}, "force": again}
    ask(api, f"/flow_runs/{run}/set_state", wish)
