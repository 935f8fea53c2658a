"""recrawl crawl."""

from typing import Annotated

from crawler.app.settings import SettingsPatch
from crawler.cli import values
from crawler.cli.lazy import crawl as app
from crawler.cli.lazy import crawl_output, maintenance, preview_output
from crawler.cli.options import At, Json, Offline, argument, flag, option
from crawler.cli.session import DONE, settings
from crawler.cli.settings_options import EMPTY_PATCH, add_settings_options
from crawler.errors import BadInput


@add_settings_options(of_crawl=True)
def crawl(
    names: Annotated[
        list[str] | None,
        argument("URL|DOMAIN", "The domains to crawl, or pages of them to fetch now. New domains are registered."),
    ] = None,
    pages: Annotated[int | None, option("N", "Visit at most this many pages in this run.", min=1)] = None,
    due: Annotated[
        bool,
        flag(
            "--due",
            "Crawl all registered domains, with their budgets spread over the day. With a URL: do not fetch that page "
            "unless it is due.",
        ),
    ] = False,
    tag: Annotated[str | None, option("TAG", "Also crawl the registered domains with this tag.")] = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "Show what would be fetched, and at what cost, without fetching it.")
    ] = False,
    max_run_time: Annotated[str | None, option("SPAN", "Stop after this time, such as 90s, 10m or 2h.")] = None,
    offline: Offline = False,
    patch: SettingsPatch = EMPTY_PATCH,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Crawl new pages and revisit due pages in this process, until none is left.

    A URL of an unregistered domain registers that domain with the settings given here. A URL with a path is fetched
    even if it is not due, and then what is due of its domain. A named domain may use the rest of its budget of the day
    at once. The first Ctrl-C finishes the requests in progress; the second stops immediately.

    Exit code 1 if a domain could not be crawled, because it returns only errors such as 503, because its robots.txt is
    unavailable, or because another worker took over the domain. A single failed page does not count.

    Examples:

        recrawl crawl https://docs.example.com
        recrawl crawl docs.example.com --pages 100
        recrawl crawl --due
        recrawl crawl --tag news
        recrawl crawl docs.example.com --dry-run
        recrawl crawl http://127.0.0.1:8000/ --allow-private --json
    """
    time_limit = values.parse_span(max_run_time) if max_run_time else None
    if not names and not due and tag is None:
        raise BadInput("nothing to crawl: give a URL or a domain, a --tag, or --due for all registered domains")
    if settings().plugins:
        maintenance.check_plugins(settings())
    if dry_run:
        preview_output.show_preview(names or (), tag=tag, patch=patch, max_pages=pages, at=at, as_json=as_json)
        return DONE

    request = app.CrawlRequest(
        role="crawl",
        at=at,
        max_pages=pages,
        time_limit=time_limit,
        ignore_pace=bool(names)
        or (tag is not None and not due),  # a domain that the user names is fetched now, not spread over the day
    )
    return crawl_output.run_crawl(names or (), request, tag=tag, patch=patch, due=due, offline=offline, as_json=as_json)
