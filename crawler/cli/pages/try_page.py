"""recrawl try: its options and its help."""

from pathlib import Path
from typing import Annotated

from crawler.cli.lazy import try_page as app
from crawler.cli.lazy import try_page_output
from crawler.cli.options import At, Json, argument, flag, option


def try_page(
    url: Annotated[str, argument("URL", "A page of a registered domain, known or not.")],
    again: Annotated[bool, flag("--again", "Look three times, one delay apart, and show what that teaches.")] = False,
    screenshot: Annotated[
        Path | None, option("FILE", "Render it, and write a picture (PNG, without its images).", dir_okay=False)
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Look at one page, and show what of it would be compared, what is masked, and why; nothing is recorded.

    Of a known page: what differs from its last version, and which of it is news. It is a look like any other: as
    robots.txt and the domain's scope, delay and budget allow. Exit code 1 where the page could not be had.

    Examples:

        recrawl try https://docs.example.com/guide/install.html
        recrawl try https://docs.example.com/ --again
        recrawl try https://app.example.com/ --screenshot app.png
        recrawl try https://docs.example.com/ --json
    """
    how = app.TryWay(again=again, screenshot=screenshot is not None)
    return try_page_output.try_url(url, how=how, screenshot=screenshot, at=at, as_json=as_json)
