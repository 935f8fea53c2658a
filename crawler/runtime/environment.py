"""The environment of everything that is Prefect here, in one place."""

import os
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from crawler.runtime.children import TAG
from crawler.runtime.keys.home_keys import list_own_origins

POOL = "recrawl"
WATCH_PATH = "/recrawl/run/"
HEARTBEAT_SECONDS = 30  # the least that Prefect allows

# Quiet: nothing is sent to anybody, nothing is advertised, nobody looks for updates, nothing asks.
QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # it asks an address of an analytics firm at every page, whatever is set
    "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    "PREFECT_LOGGING_COLORS": "false",
}
# What a run needs, wherever the server is.
CLIENT = {
    # While Postgres or the server is restarted, a state call gets a 500; without a retry the run becomes a zombie.
    "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),
    "PREFECT_WORKER_QUERY_SECONDS": "2",
    "PREFECT_WORKER_PREFETCH_SECONDS": "2",
    "PREFECT_RUNNER_POLL_FREQUENCY": "2",
    "PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE": "10000",  # unbounded by default: an outage of the server fills the memory
    "PREFECT_LOGGING_EXTRA_LOGGERS": "recrawl",
}
# What our own server does: by default it writes each task's state by itself, and keeps everything for months.
SERVER = {
    "PREFECT_SERVER_API_HOST": "127.0.0.1",
    # By default it gives its database 10 s for a statement and 5 for a connection; a busy machine needs more of both.
    "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
    "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "2",
    "PREFECT_SERVER_SERVICES_SCHEDULER_MAX_RUNS": "12",  # ahead; by default 100, most of them in the way on the screen
    "PREFECT_SERVER_SERVICES_TRIGGERS_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": '["events","flow_runs"]',
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": "P2D",
}


@dataclass(frozen=True, slots=True)
class PrefectApi:
    """A Prefect server's API. auth: what it asks for, user:password; None where it asks for nothing."""

    url: str
    auth: str | None = field(default=None, repr=False)

    @property
    def ui_url(self) -> str:
        """Where people look at it."""
        return self.url.removesuffix("/api")


def build_client_environment(home: Path, api: PrefectApi) -> dict[str, str]:
    """What has to be set before prefect is imported, in any process that talks to that server."""
    auth = {"PREFECT_API_AUTH_STRING": api.auth} if api.auth is not None else {}
    return QUIET | CLIENT | auth | {"PREFECT_API_URL": api.url, "PREFECT_HOME": str(home / "prefect")}


def build_server_environment(
    home: Path, *, port: int, auth: str, database_url: str, keep_runs: timedelta
) -> dict[str, str]:
    """What our own server is started with. database_url: postgresql://..., a database that is Prefect's alone.

    keep_runs: for how long it keeps runs that have ended, with their logs; its own service forgets older ones.
    """
    overrides = {
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(int(keep_runs.total_seconds())),
        "PREFECT_SERVER_API_AUTH_STRING": auth,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": ",".join(list_own_origins(port)),
        # The variable, not the flag: the user interface calls the API where this says.
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": database_url.replace("postgresql://", "postgresql+asyncpg://", 1),
        # Otherwise it writes the files of its user interface, which name the port, into the installed package.
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home / "prefect" / "ui"),
    }
    return build_client_environment(home, PrefectApi(build_api_url(port), auth)) | SERVER | overrides


def build_worker_environment(home: Path, api: PrefectApi, *, tag: str, database_url: str) -> dict[str, str]:
    """Return what Prefect's worker and its runs are started with. tag: of what they descend from."""
    return build_client_environment(home, api) | {
        TAG: tag,
        "RECRAWL_HOME": str(home),
        "RECRAWL_DATABASE_URL": database_url,
        "TMPDIR": str(home / "tmp"),  # Prefect keeps runs' files in a folder of one name for all users
        # Runs are started as "python", which has to be this one.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
    }


def build_worker_command(name: str) -> list[str]:
    """Return the command of Prefect's worker."""
    options = ["--name", name, "--pool", POOL, "--type", "process", "--install-policy", "never"]
    return [sys.executable, "-m", "prefect", "worker", "start", *options]


def build_api_url(port: int) -> str:
    """Return where programs ask our own server."""
    return f"http://127.0.0.1:{port}/api"
