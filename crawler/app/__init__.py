"""The operations of recrawl, used by the command, the web UI, the HTTP API, the flows and Python programs.

    from crawler.app import open_app

    with open_app() as app:
        app.add("https://docs.example.com")
        app.crawl("docs.example.com")
        for page in app.pages("docs.example.com"):
            print(page.url, page.content)

`async with open_app()` offers the same methods for asyncio. The names of this package are the public Python API
(docs/python.md). They are imported on first use, because most other modules need few of them. The functions in these
modules take and return values; they never print and never read the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawler.app.python_api.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import a name of the public API when it is first used. Other lowercase names are submodules that Python finds."""
    if name.startswith("_") or (name.islower() and name != "open_app"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("crawler.app.python_api.public"), name)
