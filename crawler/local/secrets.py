"""Secrets that domains name: variables of this process, files that they name, and Secret blocks of a Prefect server."""

from collections.abc import Awaitable, Callable
from functools import partial

from crawler.core.http import Reference, SecretSource
from crawler.errors import StackFailed
from crawler.local.stack import server_in_use
from crawler.secret_files import variable
from crawler.settings import Settings


def secrets_of(settings: Settings) -> Callable[[Reference], Awaitable[str | None]]:
    """What finds the secret at a reference; None where there is none, and for a block while no server answers."""
    return partial(_secret, settings)  # which another process can be given


async def _secret(settings: Settings, reference: Reference) -> str | None:
    if reference.source is SecretSource.ENV:
        return variable(reference.name)
    return await _block(reference.name, settings)


async def _block(name: str, settings: Settings) -> str | None:
    try:
        api = server_in_use(settings)
    except StackFailed:
        return None
    from crawler.local.prefect.api import secret_block  # takes a second, and few domains name a block

    return await secret_block(api, name)
