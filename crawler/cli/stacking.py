"""recrawl up, down, status: what runs on this machine."""

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say, show
from crawler.local import stack
from crawler.settings import settings


def up(*, as_json: bool) -> int:
    running = stack.up(settings(), report=remark)
    if as_json:
        print_json({"ui": running.ui_url, "api": running.api_url, "home": str(running.home)})
    else:
        say(f"Look at it: {running.ui_url}")
    return DONE


def down(*, as_json: bool) -> int:
    stopped = stack.down(settings(), report=remark)
    if as_json:
        print_json({"stopped": stopped})
    else:
        say("The stack is down" if stopped else "There was nothing to stop")
    return DONE


def status(*, as_json: bool) -> int:
    parts = stack.status(settings())
    if as_json:
        print_json({"running": all(part.is_running for part in parts), "parts": parts})
    else:
        show(
            ["part", "state", "where"],
            [(part.name, "running" if part.is_running else "not running", part.detail) for part in parts],
        )
    return DONE if all(part.is_running for part in parts) else PROBLEM
