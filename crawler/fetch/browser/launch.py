"""Which browser there is on this machine, and how it is started.

It sees next to nothing of our environment, and runs in its sandbox wherever that can run.
"""

import os
import shlex
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path

from playwright._impl import transport
from playwright.async_api import Browser, Playwright, async_playwright

# Variables that the driver and the browser see. All others may be secrets: domains name theirs by env:NAME.
KEPT_VARIABLES = frozenset(
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
    "install one with `apt-get install chromium-headless-shell` or `playwright install chromium-headless-shell`, "
    f"or name one in {VARIABLE}"
)
_DOWNLOADS = ("chromium_headless_shell-*/*/*headless*shell*", "chromium-*/*/chrome")
NOWHERE = "http://127.0.0.1:9"  # what is outside of any tab's proxy is sent there: the discard port


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


def _reduced_environment() -> dict[str, str]:
    """Return the environment of a driver; of one that is not ours, as Playwright has it."""
    full: dict[str, str] = _driver_environment()
    return {name: value for name, value in full.items() if name in KEPT_VARIABLES} if _is_ours.get() else full


vars(transport)["get_driver_env"] = _reduced_environment  # Playwright has no option for it


def find_browser(named: str | None = None) -> Path:
    """The browser's program: the one that is named, Playwright's own, or one on the path.

    named: by the user, a path or the name of a program.  Raises BrowserMissing.
    """
    if named:
        found = shutil.which(named)
        if found is None:
            raise BrowserMissing(f"{VARIABLE} names {named}, which is no program: {REMEDY}")
        return Path(found)
    own = _own_downloads()
    if own is not None:
        return own
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    raise BrowserMissing(f"No browser was found, so no page is rendered: {REMEDY}")


def _own_downloads() -> Path | None:
    """A browser that Playwright downloaded for this user, the newest."""
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    for pattern in _DOWNLOADS:
        for found in sorted(folder.glob(pattern), reverse=True):
            if found.is_file() and os.access(found, os.X_OK):
                return found
    return None


@asynccontextmanager
async def driver_running() -> AsyncIterator[Playwright]:
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
            proxy={"server": NOWHERE, "bypass": "<-loopback>"},
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
