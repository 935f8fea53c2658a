"""A program that is given a message on stdin, for as long as its deadline."""

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

from crawler.errors import BadInput

MOST_SAID = 300  # characters of what it says last that are kept
MOST_READ = 1 << 16


def command_line(text: str) -> list[str]:
    """The words of a command, as a shell would split them; no shell runs it. Raises BadInput."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadInput(f"the command cannot be read: {error}") from error
    if not words:
        raise BadInput("command: is followed by a program, as in command:/usr/local/bin/tell")
    return words


async def run(words: Sequence[str], given: bytes, *, deadline: timedelta, environment: Mapping[str, str]) -> str:
    """Run a program in a session of its own, which is killed as a whole at its deadline.

    Return why it did not end well, in a few words; empty where it did.
    """
    try:
        child = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror or type(error).__name__}"
    try:
        async with asyncio.timeout(deadline.total_seconds()):
            said, _ = await asyncio.gather(_said(child), _give(child, given))
            code = await child.wait()
    except TimeoutError:
        return f"it did not end within {deadline.total_seconds():g} s"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # what it has left running, too
        await child.wait()
    if code == 0:
        return ""
    how = f"it ended with {code}" if code > 0 else f"it was ended by signal {-code}"
    return f"{how}: {said}" if said else how


async def _give(child: asyncio.subprocess.Process, given: bytes) -> None:
    """Write all to its stdin; a program need not read it."""
    assert child.stdin is not None
    with suppress(ConnectionError):
        child.stdin.write(given)
        await child.stdin.drain()
    child.stdin.close()
    with suppress(ConnectionError):
        await child.stdin.wait_closed()


async def _said(child: asyncio.subprocess.Process) -> str:
    """The end of what it says on stderr, in one line."""
    assert child.stderr is not None
    kept = b""
    while part := await child.stderr.read(MOST_READ):
        kept = (kept + part)[-MOST_SAID:]
    return " ".join(kept.decode("utf-8", errors="replace").split())
