"""recrawl plugins: its options and its help."""

from crawler.cli.lazy import maintenance
from crawler.cli.options import Json
from crawler.cli.output import print_listing, say
from crawler.cli.session import DONE, PROBLEM, settings


def plugins(as_json: Json = False) -> int:
    """List the plugins that installed packages offer, which of them are used, and what is wrong with those.

    RECRAWL_PLUGINS names those that are used; they alone are imported. Exit code 1 where one cannot be used.

    Examples:

        recrawl plugins
        RECRAWL_PLUGINS=papers,calendars recrawl plugins
        recrawl plugins --json
    """
    statuses = maintenance.list_plugins(settings())
    problems = [each.problem for each in statuses if each.problem]
    rows = (
        {
            "name": each.name,
            "extension point": each.point,
            "used": "cannot be" if each.problem else "yes" if each.is_used else "no",
            "package": each.package,
            "target": each.target,
        }
        for each in statuses
    )
    document = {"plugins": statuses, "well": not problems}
    if print_listing(document, rows, empty="No installed package offers a plugin", as_json=as_json):
        for problem in problems:
            say(problem)
    return PROBLEM if problems else DONE
