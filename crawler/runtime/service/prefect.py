"""The Prefect server in the foreground, on a Postgres that is there, for workers on other machines."""

import os
import sys
import time
from typing import NoReturn

from crawler.errors import StackFailed
from crawler.runtime.environment import server_environment
from crawler.runtime.parts import Report
from crawler.runtime.private import private_folder
from crawler.runtime.service.needs import told_as, wait_until_usable
from crawler.settings import Settings
from crawler.store.database import libpq_url, silence_of


def serve_prefect(settings: Settings, *, host: str, port: int, address: str | None, report: Report) -> NoReturn:
    """Become the Prefect server. address: the origin by which browsers reach it; None for this machine's own.

    Raises StackFailed without a database or an auth string: who reaches an open server can start programs.
    """
    auth, named = settings.prefect_api_auth_string, settings.prefect_database_url
    if auth is None or ":" not in auth.get_secret_value():
        raise StackFailed("PREFECT_API_AUTH_STRING is not set to user:password: whoever reaches the server needs it")
    if named is None:
        raise StackFailed("RECRAWL_PREFECT_DATABASE_URL is not set: the server needs a database of its own")
    home, url = settings.home.resolve(), libpq_url(named.get_secret_value())
    private_folder(home, "prefect")
    wait_until_usable(lambda: silence_of(url), wait=_sleep, report=report)
    origin = address or f"http://127.0.0.1:{port}"
    environment = (
        server_environment(
            home, port=port, auth=auth.get_secret_value(), database_url=url, keep_runs=settings.keep_runs
        )
        | told_as(settings)
        | {
            "PREFECT_SERVER_API_HOST": host,
            "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": origin,
            "PREFECT_SERVER_UI_API_URL": f"{origin}/api",
        }
    )
    os.chdir(home)  # prefect reads settings from files that lie where it is started
    os.execve(  # noqa: S606  signals then reach the server itself
        sys.executable, [sys.executable, "-m", "crawler.runtime.prefect.program"], os.environ | environment
    )


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False
