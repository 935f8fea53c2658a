"""Secrets that domains name: variables of this process, files that they name, and Secret blocks of a Prefect server."""

import os
from collections.abc import Awaitable, Callable
from functools import partial

import psutil

from crawler.core.http.credentials import SecretReference, SecretSource
from crawler.errors import BadInput, StackFailed
from crawler.runtime.children import WORKER, find_child
from crawler.runtime.stack import find_server, is_without_worker
from crawler.secret_files import SUFFIX, read_variable
from crawler.settings import Settings


def build_secret_finder(settings: Settings) -> Callable[[SecretReference], Awaitable[str | None]]:
    """What finds the secret at a reference; None where there is none, and for a block while no server answers."""
    return partial(_find_secret, settings)  # which another process can be given


def explain_missing_in_worker(settings: Settings, reference: SecretReference) -> str:
    """Why whoever tells and crawls by himself may not find a secret that stands in a variable; empty where he does.

    The worker of a stack has the variables of the `recrawl up` that started it, whatever was set since.
    """
    if reference.source is not SecretSource.ENV:
        return ""
    worker, name = find_child(settings.home.resolve(), WORKER), reference.name
    if worker is None:
        return "" if is_without_worker(settings) else f"workers elsewhere need {name}, or {name}{SUFFIX}, too"
    remedy = f"recrawl down, then recrawl up where {name} is set"
    try:
        worker_variables = psutil.Process(worker.process.pid).environ()
    except psutil.Error:
        return f"the running stack has the variables that it was started with: if {name} is newer, {remedy}"
    own_value = os.environ.get(name)
    if name not in worker_variables and f"{name}{SUFFIX}" not in worker_variables:
        return f"the running stack was started without {name}, and cannot use it: {remedy}"
    if own_value is not None and worker_variables.get(name, own_value) != own_value:
        return f"the running stack was started with another {name}: {remedy}"
    return ""


def explain_missing(settings: Settings, reference: SecretReference) -> str:
    """Why a secret that a variable holds may not be found by whoever crawls, and what to do; empty where it is."""
    try:
        is_here = read_variable_secret(reference) is not None
    except BadInput as error:  # its file cannot be read
        return str(error)
    has_worker = find_child(settings.home.resolve(), WORKER) is not None  # whose variables count
    if is_here or has_worker or reference.source is not SecretSource.ENV:
        return explain_missing_in_worker(settings, reference)
    name = reference.name
    return f"{name} is not set here: set it, or {name}{SUFFIX}, where you crawl; until then nothing is fetched"


def read_variable_secret(reference: SecretReference) -> str | None:
    """Return the secret at a reference to a variable, or None; for a block, too, which a server would be asked for."""
    return read_variable(reference.name) if reference.source is SecretSource.ENV else None


async def _find_secret(settings: Settings, reference: SecretReference) -> str | None:
    if reference.source is SecretSource.ENV:
        return read_variable_secret(reference)
    try:
        api = find_server(settings)
    except StackFailed:
        return None
    from crawler.runtime.prefect.api import read_secret_block  # takes a second, and few domains name a block

    return await read_secret_block(api, reference.name)
