"""Secrets of domains and subscriptions, from environment variables, files, or Secret blocks of a Prefect server."""

import os
from collections.abc import Awaitable, Callable
from functools import partial

import psutil

from crawler.core.http.credentials import SecretReference, SecretSource
from crawler.errors import BadInput, StackFailed
from crawler.runtime.background_processes import WORKER, find_child
from crawler.runtime.stack import find_server, is_without_worker
from crawler.secret_files import SUFFIX, read_variable
from crawler.settings import Settings


def build_secret_finder(settings: Settings) -> Callable[[SecretReference], Awaitable[str | None]]:
    """Return a function that looks up a secret: None if it or the server is missing, BadInput for an unusable file."""
    return partial(_find_secret, settings)  # a partial can be pickled for another process


def explain_missing_in_worker(settings: Settings, reference: SecretReference) -> str:
    """Return why the worker process may not find the secret of a variable, and what to do; empty if it finds it.

    The worker of a stack has the variables of the `recrawl up` that started it, even if they were changed later.
    """
    if reference.source is not SecretSource.ENV:
        return ""
    worker, name = find_child(settings.home.resolve(), WORKER), reference.name
    if worker is None:
        return "" if is_without_worker(settings) else f"workers on other machines also need {name} or {name}{SUFFIX}"
    remedy = f"set {name}, then run recrawl down and recrawl up"
    try:
        worker_variables = psutil.Process(worker.process.pid).environ()
    except psutil.Error:
        return f"the local stack has the variables of its start: if {name} was set or changed later, {remedy}"
    own_value = os.environ.get(name)
    if name not in worker_variables and f"{name}{SUFFIX}" not in worker_variables:
        return f"the local stack was started without {name} and cannot use it: {remedy}"
    if own_value is not None and worker_variables.get(name, own_value) != own_value:
        return f"the local stack was started with another value of {name}: {remedy}"
    return ""


def explain_missing(
    settings: Settings, reference: SecretReference, *, user: str = "you crawl; nothing is fetched"
) -> str:
    """Return why a crawl may not find the secret of a variable, and what to do; empty if it finds it.

    user: where the secret is needed, and what does not happen without it.
    """
    try:
        is_here = read_variable_secret(reference) is not None
    except BadInput as error:  # its file cannot be read
        return str(error)
    has_worker = find_child(settings.home.resolve(), WORKER) is not None  # then the variables of the worker count
    if is_here or has_worker or reference.source is not SecretSource.ENV:
        return explain_missing_in_worker(settings, reference)
    name = reference.name
    return f"{name} is not set here: set it, or {name}{SUFFIX}, where {user} until then"


def read_variable_secret(reference: SecretReference) -> str | None:
    """Return the secret of a variable, or None if it is missing or the reference names a block."""
    return read_variable(reference.name) if reference.source is SecretSource.ENV else None


async def _find_secret(settings: Settings, reference: SecretReference) -> str | None:
    if reference.source is SecretSource.ENV:
        return read_variable_secret(reference)
    try:
        api = find_server(settings)
    except StackFailed:
        return None
    from crawler.runtime.prefect.api import read_secret_block  # the import takes a second, and few domains use a block

    return await read_secret_block(api, reference.name)
