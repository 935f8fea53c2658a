"""A month of refreshes with a local stack and a budget: each is served immediately, or shows why and until when."""

import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.runtime.lifecycle import start_stack, stop_stack
from crawler.runtime.stack import Stack
from crawler.settings import Settings
from crawler.store import domains
from crawler.store.database import Database
from labs.demo.server import living_process
from tests.engine.crawls import rows
from tests.flows.stage import ask, run_state, start_run
from tests.flows.test_flows import in_database
from tests.patience import until

DAYS = 30
WHOLE_SITE = 10  # days from one refresh of all pages to the next
FOR_OTHERS = 2  # requests per day: robots.txt and a probe
BUDGET = 70  # requests per day, for some 90 pages
START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
WITHIN = timedelta(minutes=2)
KNOWN = "SELECT url FROM page JOIN frontier USING (domain_id, key) WHERE state = 'fetched' ORDER BY url"
GOES_ON = re.compile(r"has spent its daily budget of 70 requests and continues at (\S+ \S+)Z")


@pytest.fixture
def stack() -> Iterator[Stack]:
    home = Path(tempfile.mkdtemp(prefix="recrawl-refresh-"))
    home.chmod(0o755)
    settings = Settings(home=home, database_url=None, PREFECT_API_URL=None)
    try:
        yield start_stack(settings, report=print)
    finally:
        stop_stack(settings, report=print)
        shutil.rmtree(home)


def message_of(stack: Stack, deployment: str, **parameters: object) -> str:
    """Run a flow to its end; return the message of its state."""
    run = start_run(stack.api, deployment, **parameters)
    until(lambda: run_state(stack.api, run) in {"Completed", "Failed", "Crashed"})
    found = ask(stack.api, f"/flow_runs/{run}")
    assert found["state_name"] == "Completed", found["state"]["message"]
    return str(found["state"]["message"])


async def late_pages(db: Database, *, prefix: str, at: datetime) -> list[str]:
    """Return the pages under a prefix that were not visited within two minutes."""
    query = """
        SELECT url FROM page JOIN frontier f USING (domain_id, key)
         WHERE starts_with(url, %s) AND f.state = 'fetched' AND last_visit_at NOT BETWEEN %s AND %s
    """
    return [row[0] for row in await rows(db, query, prefix, at, at + WITHIN)]


@pytest.mark.soak
def test_each_refresh_is_served_immediately_or_shows_when(stack: Stack) -> None:
    chance = random.Random(30)
    served = told = 0
    with living_process(7, pages=90, start=START, days=DAYS) as site:
        name = Authority(site.url.removeprefix("http://").rstrip("/"))
        domain = in_database(
            stack,
            lambda db: domains.register(
                db,
                name,
                scheme="http",
                domain_settings=DomainSettings(allow_private=True, budget_per_day=BUDGET),
                at=START,
            ),
        )
        for day in range(DAYS):
            morning = START + timedelta(days=day, hours=6)
            site.set_instant(morning)
            message_of(stack, "crawl/crawl", domain=name, at=morning.isoformat())
            for hour in sorted(chance.sample(range(7, 23), 2)):
                at = START + timedelta(days=day, hours=hour)
                site.set_instant(at)
                known = in_database(stack, lambda db: rows(db, KNOWN))
                prefix = "/" + chance.choice(known)[0].removeprefix(domain.root).rpartition("/")[0]
                if day % WHOLE_SITE == WHOLE_SITE - 1:
                    prefix = "/"  # more pages than a day's budget
                said = message_of(stack, "recrawl/recrawl", domain=name, path=f"{prefix}*", at=at.isoformat())
                late = in_database(stack, partial(late_pages, prefix=f"{domain.root}{prefix[1:]}", at=at))
                if not late:
                    served += 1
                    continue
                found = GOES_ON.search(said)
                assert found, (said, late)
                told += 1
                goes_on = datetime.fromisoformat(f"{found[1]}+00:00")
                assert goes_on == START + timedelta(days=day + 1)
                site.set_instant(goes_on)
                message_of(stack, "crawl/crawl", domain=name, at=goes_on.isoformat())
                waiting = int(said.rpartition("; ")[2].split()[0])
                ((left,),) = in_database(
                    stack, lambda db: rows(db, "SELECT count(*) FROM frontier WHERE request_reason IN (1, 4)")
                )
                assert left <= max(waiting - BUDGET + FOR_OTHERS, 0), said
                break  # the next day has begun
    print(f"served {served}, told to wait {told}")  # noqa: T201  with -s
    assert served > DAYS
    assert told > 0
