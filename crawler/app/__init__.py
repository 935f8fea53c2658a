"""What recrawl can do, each verb once: for the command, the web UI, the HTTP API, the flows, and for your programs.

    from crawler.app import open_app

    with open_app() as app:
        app.add("https://docs.example.com")
        app.crawl("docs.example.com")
        for page in app.pages("docs.example.com"):
            print(page.url, page.text)

`async with open_app()` gives the same verbs for asyncio. The names of this package are the public Python API
(docs/python.md); they are imported when they are first used, since the modules beside it need few of them. Functions
in those modules take and return values: they never print and never read a command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawler.app.python_api.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import a name of the public API when it is first used; other lower-case names are modules of this package."""
    if name.startswith("_") or (name.islower() and name != "open_app"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("crawler.app.python_api.public"), name)
