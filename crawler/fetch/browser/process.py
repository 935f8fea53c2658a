"""Find the browser on this machine, start it, and watch its processes.

The browser gets a reduced environment, runs in its sandbox where that is possible, and has a memory limit.
"""

import contextlib
import os
import resource
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path

from playwright._impl import transport
from playwright.async_api import Browser, Playwright, async_playwright

# Environment variables that driver and browser get. Others may be secrets, which domains refer to by env:NAME.
PASSED_VARIABLES = {
    *("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "FONTCONFIG_FILE"),
    *("PW_LANG_NAME", "PW_LANG_NAME_VERSION", "PW_CLI_DISPLAY_VERSION"),  # from Playwright to its driver
    "RECRAWL_STACK",  # by this, `recrawl down` finds the processes of the local stack
}
VARIABLE = "RECRAWL_BROWSER"
# The headless shell is first: it needs a third of the others' CPU time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
REMEDY = (
    "install one with `apt-get install chromium-headless-shell` or "
    f"`{shlex.quote(sys.executable)} -m playwright install chromium-headless-shell`, or name one in {VARIABLE}"
)
_DOWNLOADS = ("chromium_headless_shell-*/*/*headless*shell*", "chromium-*/*/chrome")
PROC = Path("/proc")


class BrowserMissing(Exception):
    """No browser was found or it does not start. The message is for users."""


class Sandbox(StrEnum):
    """How Chromium's sandbox is set up."""

    OWN = "own"  # by Chromium itself, for an ordinary account
    NAMESPACE = "namespace"  # for root, which Chromium rejects: it gets an ordinary account of a user namespace
    NONE = "none"


class DriverLost(Exception):
    """Playwright's driver did not start, or ended during its start."""


_is_ours: ContextVar[bool] = ContextVar("recrawl_driver", default=False)  # whether recrawl starts the driver
# The sandbox to try first.
BEST_SANDBOX = Sandbox.NAMESPACE if os.geteuid() == 0 else Sandbox.OWN
_driver_environment = vars(transport)["get_driver_env"]


def _reduce_environment() -> dict[str, str]:
    """Return the environment of a driver: reduced if recrawl starts it, else Playwright's default."""
    full: dict[str, str] = _driver_environment()
    return {name: value for name, value in full.items() if name in PASSED_VARIABLES} if _is_ours.get() else full


vars(transport)["get_driver_env"] = _reduce_environment  # Playwright has no option for it


def find_browser(browser_name: str | None = None) -> Path:
    """Find the browser's executable: the named one, else one that Playwright downloaded, else one on the PATH.

    browser_name: a path or the name of a program.  Raise BrowserMissing if there is none.
    """
    if browser_name:
        program = shutil.which(browser_name)
        if program is None:
            raise BrowserMissing(f"{VARIABLE} is {browser_name}, which is not an executable program: {REMEDY}")
        return Path(program)
    downloaded = _find_download()
    if downloaded is not None:
        return downloaded
    if program := next(filter(None, map(shutil.which, NAMES)), None):
        return Path(program)
    raise BrowserMissing(f"No browser was found, so pages are not rendered: {REMEDY}")


def _find_download() -> Path | None:
    """Return a browser that Playwright downloaded for this user, if any; preferably a headless shell."""
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    programs = (program for pattern in _DOWNLOADS for program in sorted(folder.glob(pattern), reverse=True))
    return next((each for each in programs if each.is_file() and os.access(each, os.X_OK)), None)


@asynccontextmanager
async def run_driver() -> AsyncIterator[Playwright]:
    """Start Playwright's driver and end it with the block. Raise DriverLost if it does not start."""
    manager = async_playwright()
    token = _is_ours.set(True)
    try:
        driver = await manager.start()
    except Exception as error:  # Playwright raises no specific exception when the driver ends
        raise DriverLost(str(error)) from error
    finally:
        _is_ours.reset(token)
    # Retrieve the transport's error, which nothing awaits once the driver runs; otherwise asyncio would print it.
    client = vars(manager)["_client"]
    vars(client)["_transport"].on_error_future.add_done_callback(lambda lost: lost.cancelled() or lost.exception())
    try:
        yield driver
    finally:
        await manager.__aexit__()


async def launch(driver: Playwright, program: Path, flags: Sequence[str], sandbox: Sandbox) -> Browser:
    """Start the browser with this sandbox. Raise PlaywrightError if that is impossible."""
    with _executable(program, sandbox) as executable:
        return await driver.chromium.launch(
            executable_path=executable,
            args=flags,
            chromium_sandbox=sandbox is not Sandbox.NONE,
            # Requests outside of any tab go to the discard port, where nothing listens.
            proxy={"server": "http://127.0.0.1:9", "bypass": "<-loopback>"},
            handle_sigint=False,  # Ctrl-C ends the crawl first
            handle_sigterm=False,
            handle_sighup=False,
        )


@contextmanager
def _executable(program: Path, sandbox: Sandbox) -> Iterator[Path]:
    """Yield what Playwright should execute: the browser, or a script that starts it in a namespace."""
    if sandbox is not Sandbox.NAMESPACE:
        yield program
        return
    with tempfile.TemporaryDirectory(prefix="recrawl-browser-") as folder:
        script = Path(folder, "browser")
        # Any account except 0, which Chromium rejects. Files are still opened as root, without its privileges.
        namespace = "unshare --user --map-user=1000 --map-group=1000"
        script.write_text(f'#!/bin/sh\nexec {namespace} -- {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
        script.chmod(0o700)
        yield script


def list_process_tree(pid: int) -> list[int]:
    """Return a process and all its descendants; empty if it has ended or the system does not support this."""
    tree, pending = [], [pid]
    while pending:
        pid = pending.pop()
        try:
            children = (PROC / str(pid) / "task" / str(pid) / "children").read_text(encoding="ascii")
        except OSError:
            continue
        tree.append(pid)
        pending += map(int, children.split())
    return tree


def find_ancestor_child(pid: int) -> int | None:
    """Return the direct child of this process that is `pid` or its ancestor; None if there is none or it is unknown."""
    with contextlib.suppress(OSError):
        while (parent := int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])) != os.getpid():
            if parent <= 1:
                return None
            pid = parent
        return pid
    return None


def read_memory(pid: int) -> tuple[int, int]:
    """Return the memory of a process in bytes: its own, and that of mapped files. Both are 0 if it has ended.

    Memory shared without a file (shared buffers, copy-on-write pages of its parent) counts as its own.
    """
    bytes_by_kind = {"RssAnon": 0, "RssShmem": 0, "RssFile": 0}
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in bytes_by_kind:
                bytes_by_kind[name] = int(value.split()[0]) << 10
    return bytes_by_kind["RssAnon"] + bytes_by_kind["RssShmem"], bytes_by_kind["RssFile"]


def sum_tree_memory(pids: Collection[int]) -> int:
    """Return the memory of a browser's processes in bytes. Mapped files, mostly its executable, count once."""
    memory = [read_memory(pid) for pid in pids]
    return sum(own for own, _ in memory) + max((shared for _, shared in memory), default=0)


def is_renderer(pid: int) -> bool:
    """Return whether a browser process is a renderer, which runs the scripts of pages."""
    with contextlib.suppress(OSError):
        return b"--type=renderer" in (PROC / str(pid) / "cmdline").read_bytes()
    return False


def limit_memory(pids: list[int], max_bytes: int) -> None:
    """Limit the private memory of these processes and of those that they start later; only on Linux."""
    if not hasattr(resource, "prlimit"):
        return
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            resource.prlimit(pid, resource.RLIMIT_DATA, (max_bytes, max_bytes))


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants."""
    for each in list_process_tree(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
