"""The environment variables of the Prefect server, its clients and its worker."""

import os
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from crawler.runtime.background_processes import TAG
from crawler.runtime.keys.home_keys import list_own_origins

POOL = "recrawl"  # the work pool
WATCH_PATH = "/recrawl/run/"  # the redirect page of a run, see host_check.py
HEARTBEAT_SECONDS = 30  # the minimum of Prefect

# No telemetry, advertisements, update checks or prompts.
QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # every page of it contacts an analytics service, regardless of settings
    "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    "PREFECT_LOGGING_COLORS": "false",
}
# The settings of workers, runs and other clients, for any server.
CLIENT = {
    # While Postgres or the server restarts, changes of run states get a 500; without a retry, runs become zombies.
    "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),
    "PREFECT_WORKER_QUERY_SECONDS": "2",
    "PREFECT_WORKER_PREFETCH_SECONDS": "2",
    "PREFECT_RUNNER_POLL_FREQUENCY": "2",
    "PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE": "10000",  # by default an outage could fill the memory
    "PREFECT_LOGGING_EXTRA_LOGGERS": "recrawl",
}
# The settings of the server: by default it writes each task state separately and keeps all data for months.
SERVER = {
    "PREFECT_SERVER_API_HOST": "127.0.0.1",
    # The defaults are 10 s for a statement and 5 s for a connection; a busy machine needs more.
    "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
    "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "2",
    "PREFECT_SERVER_SERVICES_SCHEDULER_MAX_RUNS": "12",  # in advance; the default of 100 clutters the UI
    "PREFECT_SERVER_SERVICES_TRIGGERS_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": '["events","flow_runs"]',
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": "P2D",
}


@dataclass(frozen=True, slots=True)
class PrefectApi:
    """The API of a Prefect server. auth: its auth string, as user:password; None if it needs none."""

    url: str
    auth: str | None = field(default=None, repr=False)

    @property
    def ui_url(self) -> str:
        """The address of the Prefect UI."""
        return self.url.removesuffix("/api")


def build_client_environment(home: Path, api: PrefectApi) -> dict[str, str]:
    """Return the variables that a client of the server needs before it imports prefect."""
    auth = {"PREFECT_API_AUTH_STRING": api.auth} if api.auth is not None else {}
    return QUIET | CLIENT | auth | {"PREFECT_API_URL": api.url, "PREFECT_HOME": str(home / "prefect")}


def build_server_environment(home: Path, *, port: int, auth: str, url: str, keep_runs: timedelta) -> dict[str, str]:
    """Return the variables of a server on this machine. url: postgresql://..., a database that only Prefect uses.

    keep_runs: how long Prefect keeps ended runs with their logs.
    """
    overrides = {
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(int(keep_runs.total_seconds())),
        "PREFECT_SERVER_API_AUTH_STRING": auth,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": ",".join(list_own_origins(port)),
        # As a variable instead of an option, because the UI calls the API at this port.
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": url.replace("postgresql://", "postgresql+asyncpg://", 1),
        # Otherwise the server writes the files of its UI, which contain the port, into the installed package.
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home / "prefect" / "ui"),
    }
    return build_client_environment(home, PrefectApi(build_api_url(port), auth)) | SERVER | overrides


def build_worker_environment(home: Path, api: PrefectApi, *, tag: str, database_url: str) -> dict[str, str]:
    """Return the variables of Prefect's worker and its runs. tag: the tag of the stack or service."""
    return build_client_environment(home, api) | {
        TAG: tag,
        "RECRAWL_HOME": str(home),
        "RECRAWL_DATABASE_URL": database_url,
        "TMPDIR": str(home / "tmp"),  # in /tmp, Prefect would use the same folder for the runs of all users
        # Runs are started as `python`, which must be this interpreter.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
    }


def build_worker_command(name: str) -> list[str]:
    """Return the command of Prefect's worker."""
    options = ["--name", name, "--pool", POOL, "--type", "process", "--install-policy", "never"]
    return [sys.executable, "-m", "prefect", "worker", "start", *options]


def build_api_url(port: int) -> str:
    """Return the API address of the local server."""
    return f"http://127.0.0.1:{port}/api"
