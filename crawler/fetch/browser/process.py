"""Which browser there is on this machine, how it is started, and its processes as the system sees them.

It sees next to nothing of our environment, runs in its sandbox wherever that can run, and has a bound on its memory.
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

# Variables that the driver and the browser see. All others may be secrets: domains name theirs by env:NAME.
PASSED_VARIABLES = frozenset(
    {
        *("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "FONTCONFIG_FILE"),
        *("PW_LANG_NAME", "PW_LANG_NAME_VERSION", "PW_CLI_DISPLAY_VERSION"),  # of Playwright to its driver
        "RECRAWL_STACK",  # by which `recrawl down` finds what descends from the stack
    }
)
VARIABLE = "RECRAWL_BROWSER"
# Headless shell first: a third of the processor time a page.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
REMEDY = (
    "install one with `apt-get install chromium-headless-shell` or "
    f"`{shlex.quote(sys.executable)} -m playwright install chromium-headless-shell`, or name one in {VARIABLE}"
)
_DOWNLOADS = ("chromium_headless_shell-*/*/*headless*shell*", "chromium-*/*/chrome")
DISCARD_PROXY = "http://127.0.0.1:9"  # what is outside of any tab's proxy is sent there: the discard port

PROC = Path("/proc")


class BrowserMissing(Exception):
    """No browser was found. Its text is a sentence with the remedy."""


class Sandbox(StrEnum):
    """How Chromium's sandbox is made possible."""

    OWN = "own"  # as Chromium makes it for an ordinary account
    NAMESPACE = "namespace"  # for root, which Chromium refuses: in a user namespace in which it is nobody special
    NONE = "none"


class DriverLost(Exception):
    """The driver ended while it started, or cannot be started."""


_is_ours: ContextVar[bool] = ContextVar("recrawl_driver", default=False)
# The one to try first; whether it can run, trying shows.
BEST_SANDBOX = Sandbox.NAMESPACE if os.geteuid() == 0 else Sandbox.OWN
_driver_environment = vars(transport)["get_driver_env"]


def _reduce_environment() -> dict[str, str]:
    """Return the environment of a driver; of one that is not ours, as Playwright has it."""
    full: dict[str, str] = _driver_environment()
    return {name: value for name, value in full.items() if name in PASSED_VARIABLES} if _is_ours.get() else full


vars(transport)["get_driver_env"] = _reduce_environment  # Playwright has no option for it


def find_browser(browser_name: str | None = None) -> Path:
    """The browser's program: the one that is named, Playwright's own, or one on the path.

    browser_name: by the user, a path or the name of a program.  Raises BrowserMissing.
    """
    if browser_name:
        program = shutil.which(browser_name)
        if program is None:
            raise BrowserMissing(f"{VARIABLE} names {browser_name}, which is no program: {REMEDY}")
        return Path(program)
    downloaded = _find_download()
    if downloaded is not None:
        return downloaded
    for name in NAMES:
        if program := shutil.which(name):
            return Path(program)
    raise BrowserMissing(f"No browser was found, so no page is rendered: {REMEDY}")


def _find_download() -> Path | None:
    """A browser that Playwright downloaded for this user, the newest."""
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    for pattern in _DOWNLOADS:
        for program in sorted(folder.glob(pattern), reverse=True):
            if program.is_file() and os.access(program, os.X_OK):
                return program
    return None


@asynccontextmanager
async def run_driver() -> AsyncIterator[Playwright]:
    """Start Playwright's driver, and end it with the block. Raises DriverLost."""
    manager = async_playwright()
    token = _is_ours.set(True)
    try:
        driver = await manager.start()
    except Exception as error:  # Playwright raises no class of its own where the driver ends
        raise DriverLost(str(error)) from error
    finally:
        _is_ours.reset(token)
    # Nobody waits for this error once the driver runs, and asyncio would print it when the driver ends.
    client = vars(manager)["_client"]
    vars(client)["_transport"].on_error_future.add_done_callback(lambda lost: lost.cancelled() or lost.exception())
    try:
        yield driver
    finally:
        await manager.__aexit__()


async def launch(driver: Playwright, program: Path, flags: Sequence[str], sandbox: Sandbox) -> Browser:
    """Start the browser in one of those ways. Raises PlaywrightError where that is not possible."""
    with _executable(program, sandbox) as executable:
        return await driver.chromium.launch(
            executable_path=executable,
            args=flags,
            chromium_sandbox=sandbox is not Sandbox.NONE,
            proxy={"server": DISCARD_PROXY, "bypass": "<-loopback>"},
            handle_sigint=False,  # Ctrl-C ends the crawl first
            handle_sigterm=False,
            handle_sighup=False,
        )


@contextmanager
def _executable(program: Path, sandbox: Sandbox) -> Iterator[Path]:
    """Return what Playwright is to execute: the browser, or a script that does it in a namespace."""
    if sandbox is not Sandbox.NAMESPACE:
        yield program
        return
    with tempfile.TemporaryDirectory(prefix="recrawl-browser-") as folder:
        script = Path(folder, "browser")
        # Any account but 0: Chromium asks for its number. To files it is still root, without root's privileges.
        namespace = "unshare --user --map-user=1000 --map-group=1000"
        script.write_text(f'#!/bin/sh\nexec {namespace} -- {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
        script.chmod(0o700)
        yield script


def list_process_tree(pid: int) -> list[int]:
    """A process and all that came of it; empty where it is gone, or the system does not tell."""
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
    """The child of ours from which this process came; None where it did not, or the system does not tell."""
    try:
        while (parent := int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])) != os.getpid():
            if parent <= 1:
                return None
            pid = parent
    except OSError:
        return None
    return pid


def read_memory(pid: int) -> tuple[int, int]:
    """Return the memory of a process: bytes of its own, and of files that it shares. Both are 0 where it is gone.

    What it shares without a file (shared buffers, pages of a parent before they are written to) counts as its own.
    """
    bytes_by_kind = {"RssAnon": 0, "RssShmem": 0, "RssFile": 0}
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in bytes_by_kind:
                bytes_by_kind[name] = int(value.split()[0]) << 10
    return bytes_by_kind["RssAnon"] + bytes_by_kind["RssShmem"], bytes_by_kind["RssFile"]


def sum_tree_memory(pids: Collection[int]) -> int:
    """Return the memory of a browser's processes in bytes; files, nearly all of them its program, count once."""
    memory = [read_memory(pid) for pid in pids]
    return sum(own for own, _ in memory) + max((shared for _, shared in memory), default=0)


def is_renderer(pid: int) -> bool:
    """Whether a process of the browser's runs the scripts of pages."""
    try:
        return b"--type=renderer" in (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def limit_memory(pids: list[int], max_bytes: int) -> None:
    """Bound the private memory of these processes and of all that they will start."""
    if not hasattr(resource, "prlimit"):
        return
    for pid in pids:
        with contextlib.suppress(OSError):  # it is gone
            resource.prlimit(pid, resource.RLIMIT_DATA, (max_bytes, max_bytes))


def kill_tree(pid: int) -> None:
    """End a browser at once, with all its processes."""
    for each in list_process_tree(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
