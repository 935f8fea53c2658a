"""The Prefect server for several machines, in the foreground, and the registration of its deployments."""

import asyncio
import os
import sys
import threading
import time
from typing import NoReturn

from crawler.errors import StackFailed
from crawler.runtime.background_processes import Report
from crawler.runtime.environment import build_client_environment, build_server_environment
from crawler.runtime.lifecycle import DEPLOYMENTS, register_deployments
from crawler.runtime.machine import ensure_private_folder
from crawler.runtime.service import health
from crawler.settings import Settings
from crawler.store import database


def deploy(settings: Settings, *, may_upgrade: bool, timeout_seconds: float, report: Report) -> int:
    """Migrate the database and register work pool and deployments. Return the number of new or changed deployments.

    may_upgrade: whether to migrate a database that has data; an empty one is always migrated.  timeout_seconds: how
    long to wait for the database and the server.  Raises StackFailed if one of them does not respond in time.
    """
    url, api = health.get_database_url(settings), health.get_api(settings)
    deadline = time.monotonic() + timeout_seconds

    def wait(seconds: float) -> bool:
        time.sleep(min(seconds, max(deadline - time.monotonic(), 0)))
        return time.monotonic() >= deadline

    def find_problem() -> str:
        return database.find_connection_error(url) or health.find_server_problem(api)

    if not health.wait_until_usable(find_problem, wait=wait, report=report):
        raise StackFailed(f"{find_problem()}: gave up after {timeout_seconds:g} s")
    if may_upgrade:
        report(f"Database: {database.read_schema_state(url).value}")
        database.upgrade_schema(url)
    else:
        database.prepare_schema(url, may_upgrade=False)
    home = settings.home.resolve()
    ensure_private_folder(home, "prefect")
    os.environ.update(build_client_environment(home, api) | health.build_log_environment(settings))
    return asyncio.run(register_deployments(api, DEPLOYMENTS, database_url=url, is_ours=False))


def serve_prefect(settings: Settings, *, host: str, port: int, address: str | None, report: Report) -> NoReturn:
    """Replace this process with the Prefect server. address: the origin for browsers; None for the loopback address.

    Raises StackFailed without a database, or without an auth string: all users of an open server could run programs.
    """
    auth, database_setting = settings.prefect_api_auth_string, settings.prefect_database_url
    if auth is None or ":" not in auth.get_secret_value():
        raise StackFailed("PREFECT_API_AUTH_STRING is not set to user:password, which protects the server")
    if database_setting is None:
        raise StackFailed("RECRAWL_PREFECT_DATABASE_URL is not set: the Prefect server needs a separate database")
    home, url = settings.home.resolve(), database.build_libpq_url(database_setting.get_secret_value())
    ensure_private_folder(home, "prefect")
    never = threading.Event()
    health.wait_until_usable(lambda: database.find_connection_error(url), wait=never.wait, report=report)
    origin, keep_runs = address or f"http://127.0.0.1:{port}", settings.run_retention
    variables = build_server_environment(home, port=port, auth=auth.get_secret_value(), url=url, keep_runs=keep_runs)
    variables |= health.build_log_environment(settings)
    variables["PREFECT_SERVER_API_HOST"] = host
    variables["PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS"] = origin
    variables["PREFECT_SERVER_UI_API_URL"] = f"{origin}/api"
    os.chdir(home)  # prefect reads settings from files in its working directory
    command = [sys.executable, "-m", "crawler.runtime.prefect.program"]
    os.execve(sys.executable, command, os.environ | variables)  # noqa: S606  so that signals reach the server
