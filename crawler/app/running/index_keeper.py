"""The index that the API searches, brought in step by `recrawl sync`: a process of its own, which has the memory."""

import asyncio
import logging
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from crawler.engine import child_environment
from crawler.runtime.machine import search_file

log = logging.getLogger("recrawl.api")

PAUSE = timedelta(minutes=1)  # from one sync to the next: so old is what is found, if somebody searches all the time
MOST_SAID = 300  # characters of a complaint
END_SECONDS = 5


class IndexKeeper:
    """Brings the index of a home in step when somebody searches: one sync at a time, and one a minute at most."""

    def __init__(self, home: Path, *, pause: timedelta = PAUSE) -> None:
        self._home, self._pause = home, pause
        self._wanted = asyncio.Event()
        self._trouble = ""

    def want(self) -> str:
        """Have the index brought in step, soon; gives what kept it from that last time, in a line."""
        self._wanted.set()
        return self._trouble

    async def run(self) -> None:
        """Bring it in step whenever that is wanted."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._trouble = await self._sync()
            if self._trouble:
                log.warning("search.not_in_step", extra={"why": self._trouble})
            await asyncio.sleep(self._pause.total_seconds())

    async def _sync(self) -> str:
        """Why it could not be done, or nothing."""
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "crawler", "sync", str(search_file(self._home))),
            env=child_environment({"RECRAWL_HOME": str(self._home)}),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await child.communicate()
        finally:
            if child.returncode is None:
                child.terminate()
                with suppress(TimeoutError):
                    await asyncio.wait_for(child.wait(), END_SECONDS)
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode == 0:
            return ""
        last = said.decode("utf-8", errors="replace").strip().splitlines()[-1:]
        return " ".join(last)[:MOST_SAID] or f"recrawl sync ended with {child.returncode}"
