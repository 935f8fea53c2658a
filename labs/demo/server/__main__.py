"""Serve a living site until stopped: python -m labs.demo.server --seed 1 --at 2026-01-01T00:00:00Z."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Event, Thread

from labs.demo.server.living import LivingServer
from labs.demo.site import make_site


def main(arguments: Sequence[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    at = given.at or given.start or datetime.now(UTC)
    site = make_site(given.seed, pages=given.pages, start=given.start or at, days=given.days)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if given.leash:
        Thread(target=await_end_of_input, args=(stop,), name="leash", daemon=True).start()
    with LivingServer(site, given.port, at=at, host=given.host) as server:
        sys.stdout.write(json.dumps({"url": server.url, "at": at.isoformat(), "start": site.start.isoformat()}) + "\n")
        sys.stdout.flush()
        stop.wait()


def await_end_of_input(stop: Event) -> None:
    sys.stdin.read()
    stop.set()


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m labs.demo.server", description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--pages", type=int, default=250)
    options.add_argument("--start", type=instant, help="when changes begin; default: --at")
    options.add_argument("--days", type=float, default=45, help="days with changes")
    options.add_argument("--at", type=instant, help="current instant of the site; default: --start, or now")
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default=0, help="port; 0: any free one")
    options.add_argument("--leash", action="store_true", help="stop when standard input ends, as when the parent dies")
    return options


def instant(text: str) -> datetime:
    """Parse an ISO 8601 instant; without a time zone it is UTC."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


if __name__ == "__main__":
    main()
