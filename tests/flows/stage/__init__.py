"""A stack to be killed: real Postgres, server and worker, with flows that only wait."""

import json
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S, until

STAGE = Path(__file__).parent / "deployments" / "prefect.yaml"
ENDED = {"Completed", "Failed", "Crashed", "Cancelled"}
RECORD = re.compile(r"^(?=\d\d:\d\d:\d\d\.\d+ \| )", re.MULTILINE)  # of the server's log begins so
FAULT = re.compile(r"Traceback|\w(Error|Exception)\b|\| (ERROR|CRITICAL)")


def ask(api_url: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """One call of Prefect's API: GET without a body, POST with one."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{api_url}{path}", data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        return json.load(response)


def server_words(home: Path) -> str:
    """What the running server has said since its greeting; one before it, that found its port taken, died noisily."""
    greeted, _, said = (home / "logs" / "prefect-server.log").read_text().rpartition("Configure Prefect to communicate")
    assert greeted
    return said


def complaints(home: Path) -> list[str]:
    """The records of faults in what the running server has said: its scheduler's and its other services'.

    A query or a connection that took too long is none: on a busy machine the server cuts it off and tries again.
    """
    records = RECORD.split(server_words(home))
    return [each for each in records if FAULT.search(each) and "Timeout" not in each]


def start_run(api_url: str, deployment: str, **parameters: object) -> str:
    """Start a run of flow/deployment, as the user interface does; gives its id."""
    found = ask(api_url, f"/deployments/name/{deployment}")
    return str(ask(api_url, f"/deployments/{found['id']}/create_flow_run", {"parameters": parameters})["id"])


def run_state(api_url: str, run: str) -> str:
    return str(ask(api_url, f"/flow_runs/{run}")["state_name"])


def cancel_run(api_url: str, run: str) -> None:
    """Cancel a run, as the user interface does, and wait for its end."""
    ask_to_cancel(api_url, run, again=False)
    asked_at = time.monotonic()

    def is_cancelled() -> bool:
        nonlocal asked_at
        state = run_state(api_url, run)
        if state == "Cancelling" and time.monotonic() - asked_at > 10:
            # A worker that is connecting again to a restarted server has not heard of it.
            ask_to_cancel(api_url, run, again=True)
            asked_at = time.monotonic()
        return state == "Cancelled"

    until(is_cancelled)


def ask_to_cancel(api_url: str, run: str, *, again: bool) -> None:
    wish = {"state": {"type": "CANCELLING", "name": "Cancelling"}, "force": again}
    ask(api_url, f"/flow_runs/{run}/set_state", wish)
