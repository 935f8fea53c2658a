"""recrawl plugins: those that are installed, those that are used, and what is wrong with these."""

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, say, show
from crawler.plugins import survey
from crawler.settings import settings


def list_all(*, as_json: bool) -> int:
    found = survey(settings().plugins)
    problems = [each.problem for each in found if each.problem]
    if as_json:
        print_json({"plugins": found, "well": not problems})
    elif not found:
        say("No installed package offers a plugin")
    else:
        show(
            ["name", "extension point", "used", "package", "target"],
            [
                (each.name, each.point, _shown_use(each.problem, used=each.used), each.package, each.target)
                for each in found
            ],
        )
        for problem in problems:
            say(problem)
    return PROBLEM if problems else DONE


def _shown_use(problem: str, *, used: bool) -> str:
    return "cannot be" if problem else "yes" if used else "no"
