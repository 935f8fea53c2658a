"""Which browser there is on this machine."""

import os
import shutil
from pathlib import Path

VARIABLE = "RECRAWL_BROWSER"
# Headless shell first: a third of the processor time a page.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
REMEDY = (
    "install one with `apt-get install chromium-headless-shell` or `playwright install chromium-headless-shell`, "
    f"or name one in {VARIABLE}"
)
_DOWNLOADS = ("chromium_headless_shell-*/*/*headless*shell*", "chromium-*/*/chrome")


class BrowserMissing(Exception):
    """No browser was found. Its text is a sentence with the remedy."""


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
