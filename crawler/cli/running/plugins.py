"""recrawl plugins."""

from crawler.cli.lazy import maintenance
from crawler.cli.options import Json
from crawler.cli.output import print_listing, say
from crawler.cli.session import DONE, PROBLEM, settings


def plugins(as_json: Json = False) -> int:
    """List the plugins of installed packages, whether they are enabled, and their problems.

    RECRAWL_PLUGINS lists the enabled plugins; only these are imported. Exit code 1 if one of them cannot be used.

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
            "enabled": "broken" if each.problem else "yes" if each.is_used else "no",
            "package": each.package,
            "target": each.target,
        }
        for each in statuses
    )
    document = {"plugins": statuses, "is_healthy": not problems}
    if print_listing(document, rows, empty="No installed package provides a plugin", as_json=as_json):
        for problem in problems:
            say(problem)
    return PROBLEM if problems else DONE
