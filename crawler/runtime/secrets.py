"""Secrets that domains name: variables of this process, files that they name, and Secret blocks of a Prefect server."""

import os
from collections.abc import Awaitable, Callable
from functools import partial

import psutil

from crawler.core.http.credentials import Reference, SecretSource
from crawler.errors import BadInput, StackFailed
from crawler.runtime.children import WORKER, noted
from crawler.runtime.stack import is_without_worker, server_in_use
from crawler.secret_files import SUFFIX, variable
from crawler.settings import Settings


def secrets_of(settings: Settings) -> Callable[[Reference], Awaitable[str | None]]:
    """What finds the secret at a reference; None where there is none, and for a block while no server answers."""
    return partial(_secret, settings)  # which another process can be given


def lacking_in_worker(settings: Settings, reference: Reference) -> str:
    """Why whoever tells and crawls by himself may not find a secret that stands in a variable; empty where he does.

    The worker of a stack has the variables of the `recrawl up` that started it, whatever was set since.
    """
    if reference.source is not SecretSource.ENV:
        return ""
    worker, name = noted(settings.home.resolve(), WORKER), reference.name
    if worker is None:
        return "" if is_without_worker(settings) else f"workers elsewhere need {name}, or {name}{SUFFIX}, too"
    again = f"recrawl down, then recrawl up where {name} is set"
    try:
        its = psutil.Process(worker.process.pid).environ()
    except psutil.Error:
        return f"the running stack has the variables that it was started with: if {name} is newer, {again}"
    own = os.environ.get(name)
    if name not in its and f"{name}{SUFFIX}" not in its:
        return f"the running stack was started without {name}, and cannot use it: {again}"
    if own is not None and its.get(name, own) != own:
        return f"the running stack was started with another {name}: {again}"
    return ""


def why_missing(settings: Settings, reference: Reference) -> str:
    """Why a secret that a variable holds may not be found by whoever crawls, and what to do; empty where it is."""
    try:
        is_here = secret_of_variable(reference) is not None
    except BadInput as error:  # its file cannot be read
        return str(error)
    has_worker = noted(settings.home.resolve(), WORKER) is not None  # whose variables count
    if is_here or has_worker or reference.source is not SecretSource.ENV:
        return lacking_in_worker(settings, reference)
    name = reference.name
    return f"{name} is not set here: set it, or {name}{SUFFIX}, where you crawl; until then nothing is fetched"


def secret_of_variable(reference: Reference) -> str | None:
    """Return the secret at a reference to a variable, or None; for a block, too, which a server would be asked for."""
    return variable(reference.name) if reference.source is SecretSource.ENV else None


async def _secret(settings: Settings, reference: Reference) -> str | None:
    if reference.source is SecretSource.ENV:
        return secret_of_variable(reference)
    try:
        api = server_in_use(settings)
    except StackFailed:
        return None
    from crawler.runtime.prefect.api import secret_block  # takes a second, and few domains name a block

    return await secret_block(api, reference.name)
