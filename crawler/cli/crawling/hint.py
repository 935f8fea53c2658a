"""recrawl hint: somebody says that pages have changed; it is weighed by what such hints turned out to be worth."""

from typing import Annotated

import typer

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.options import At, Json


def hint(
    urls: Annotated[
        list[str], typer.Argument(metavar="URL...|-", help="Pages that have changed; - reads one a line from stdin.")
    ],
    source: Annotated[
        str, typer.Option(metavar="NAME", help="Who says so: a CMS, IndexNow. Each source is measured by itself.")
    ] = "push",
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say that pages have changed, without ordering a look at them.

    A hint is weighed: pages are looked at sooner by as much as hints of this source have proved to be worth in their
    domain, and later where it says nothing and has never missed a change. To order looks, see recrawl refresh.
    Pages that are not known yet are found by it. --at is when they changed.

    Examples:

        recrawl hint https://docs.example.com/guide/start
        my-cms --changed-urls | recrawl hint - --source my-cms
        recrawl hint https://docs.example.com/news --at 2026-03-01T08:00Z --json
    """
    from crawler.cli.crawling import hint_output

    taken = hint_output.hint(urls, source=source, at=at, as_json=as_json)
    return DONE if taken else PROBLEM
