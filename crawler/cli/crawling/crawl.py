"""recrawl crawl: its options and its help."""

from typing import Annotated

from crawler.app.settings import SettingsPatch
from crawler.cli import values
from crawler.cli.lazy import crawl as app
from crawler.cli.lazy import crawl_output, maintenance, preview_output
from crawler.cli.options import At, Json, Offline, declare_argument, declare_flag, declare_option
from crawler.cli.session import DONE, settings
from crawler.cli.settings_options import EMPTY_PATCH, add_settings_options
from crawler.errors import BadInput


@add_settings_options(of_crawl=True)
def crawl(
    names: Annotated[
        list[str] | None, declare_argument("URL|DOMAIN", "What to crawl; what is not registered will be.")
    ] = None,
    pages: Annotated[int | None, declare_option("N", "Look at so many pages, at most.", min=1)] = None,
    due: Annotated[
        bool, declare_flag("--due", "Only what is due: of the domains named, or of all that are registered.")
    ] = False,
    dry_run: Annotated[
        bool, declare_flag("--dry-run", "Show what would be fetched now and what that costs; touch nothing.")
    ] = False,
    max_run_time: Annotated[str | None, declare_option("SPAN", "Finish after this long: 90s, 10m, 2h.")] = None,
    offline: Offline = False,
    patch: SettingsPatch = EMPTY_PATCH,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Crawl domains in this process, until nothing is due: pages never seen, and those worth looking at again.

    A URL that belongs to no registered domain registers one, with the settings given here. A URL with a path is
    looked at whether it is due or not. The first Ctrl-C finishes what is under way, the second ends at once.

    Exit code 1 where a domain could not be crawled: it answers nothing but errors such as 503 and is left alone for a
    while, its robots.txt cannot be had, or another worker has taken it over. A page that fails alone is no such thing.

    Examples:

        recrawl crawl https://docs.example.com
        recrawl crawl docs.example.com --pages 100
        recrawl crawl --due
        recrawl crawl docs.example.com --dry-run
        recrawl crawl http://127.0.0.1:8000/ --allow-private --json
    """
    time_limit = values.parse_span(max_run_time) if max_run_time else None
    if not names and not due:
        raise BadInput("nothing to crawl: name a URL or a domain, or say --due for all that is registered")
    maintenance.check_plugins(settings())
    if dry_run:
        preview_output.show_preview(names or (), patch=patch, max_pages=pages, at=at, as_json=as_json)
        return DONE

    request = app.CrawlRequest(
        role="crawl",
        at=at,
        max_pages=pages,
        time_limit=time_limit,
        ignore_pace=bool(names),  # whoever names a domain wants it now, not spread over the day
    )
    return crawl_output.run_crawl(names or (), request, patch=patch, due=due, offline=offline, as_json=as_json)
