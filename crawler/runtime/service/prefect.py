"""What a Prefect server of several machines needs: the server in the foreground, and its deployments once a version."""

import asyncio
import os
import sys
import time
from typing import NoReturn

from crawler.errors import StackFailed
from crawler.runtime.children import Report
from crawler.runtime.environment import client_environment, server_environment
from crawler.runtime.machine import private_folder
from crawler.runtime.service.health import api_of, database_of, server_problem, told_as, wait_until_usable
from crawler.runtime.up import DEPLOYMENTS, register
from crawler.settings import Settings
from crawler.store.database import libpq_url, prepare, schema_of, silence_of, upgrade


def deploy(settings: Settings, *, may_upgrade: bool, patience_seconds: float, report: Report) -> int:
    """Register the deployments and the work pool; gives how many deployments were new or different.

    Twice does no harm.  may_upgrade: migrate the database first, whatever it holds; else only an empty one is.
    patience_seconds: how long database and server are waited for.  Raises StackFailed where one of them stays silent.
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
    return asyncio.run(register(api, DEPLOYMENTS, database_url=url, is_ours=False))


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
