"""The services of compose.yaml without containers: started, looked at, ended and killed as an engine does it."""

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from crawler.demo.server import Remote, living_process
from tests.conftest import execute
from tests.flows.stage import ENDED, ask, run_state, start_run
from tests.patience import SLOW, until
from tests.service.composed import Place, Running

pytestmark = [pytest.mark.xdist_group("service"), SLOW]


@pytest.fixture(scope="module")
def place(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """An empty Postgres, as the image makes it: two databases and a user."""
    mark = uuid.uuid4().hex[:8]
    databases = {"crawl": f"crawl_{mark}", "prefect": f"prefect_{mark}"}
    # The user's name is one of the whole server, which other tests use, too.
    execute(
        postgres_url,
        "DO $$ BEGIN CREATE ROLE recrawl LOGIN PASSWORD 'of-the-tests';"
        " EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        *(f"CREATE DATABASE {name} OWNER recrawl TEMPLATE template0" for name in databases.values()),
    )
    folder = tmp_path_factory.mktemp("service")
    yield Place(folder, urlsplit(postgres_url).netloc.rpartition("@")[2], databases, "of-the-tests")
    execute(postgres_url, *(f"DROP DATABASE {name} WITH (FORCE)" for name in databases.values()))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Running]:
    with place.running("prefect") as running:
        yield running


@pytest.fixture(scope="module")
def deployed(place: Place, server: Running) -> Place:
    """A place where `deploy` has run, as it does before any worker starts."""
    done = place.run("deploy")
    assert done.returncode == 0, done.stderr
    assert "Deployments: 6 registered" in done.stdout
    return place


@pytest.fixture
def site() -> Iterator[Remote]:
    with living_process(11, pages=90, start=datetime.now(UTC).replace(microsecond=0), days=2) as remote:
        yield remote


def test_to_deploy_twice_changes_nothing(deployed: Place) -> None:
    done = deployed.run("deploy")
    assert (done.returncode, done.stdout.strip()) == (0, "Deployments: all there")
    assert all(json.loads(line)["level"] == "info" for line in done.stderr.splitlines())


def test_the_server_lets_in_who_has_the_word_alone(deployed: Place) -> None:
    request = urllib.request.Request(f"{deployed.api.url}/flows/filter", b"{}", {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request)
    assert {each["name"] for each in ask(deployed.api, "/deployments/filter", {})} >= {"crawl", "plan", "audit"}
    settings = ask(deployed.api, "/admin/settings")["server"]
    assert settings["ui"]["api_url"] == deployed.api.url


def test_a_worker_crawls_and_ends_in_good_order(deployed: Place, site: Remote) -> None:
    with deployed.running("worker") as worker:
        added = deployed.run("worker", "recrawl", "domains", "add", site.url, "--allow-private", "--delay", "0.2")
        assert added.returncode == 0, added.stderr
        run = start_run(deployed.api, "crawl/crawl")
        until(lambda: run_state(deployed.api, run) in {"Running", *ENDED})
        until(lambda: looks(deployed) > 3)

        assert worker.end() == 0

    assert run_state(deployed.api, run) == "Cancelled"
    held = deployed.run("worker", "recrawl", "db", "sql", "SELECT holder FROM report_domain", "--json")
    assert json.loads(held.stdout)["rows"] == [{"holder": None}]
    lines = worker.log.read_text().splitlines()
    assert [line for line in lines if not line.startswith("{")] == []


def looks(place: Place) -> int:
    done = place.run("worker", "recrawl", "db", "sql", "SELECT sum(looks) AS n FROM report_page", "--json")
    return int(json.loads(done.stdout)["rows"][0]["n"] or 0)


def test_pages_are_reached_by_the_address_that_compose_names(deployed: Place) -> None:
    with deployed.running("pages"):
        told = deployed.run("pages", "recrawl", "ui", "--json")
        own = f"http://127.0.0.1:{deployed.ports['4280']}"
        entrance = deployed.run("pages", "recrawl", "ui").stdout.split()[-1] if told.returncode else ""
        address = entrance or json.loads(told.stdout)["pages"]
        assert address.startswith(f"{own}/enter?code=")
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert "recrawl" in opener.open(address).read().decode()
        for wrong in (f"http://localhost.evil.example:{deployed.ports['4280']}", "http://pages:4280"):
            request = urllib.request.Request(own, headers={"host": wrong.removeprefix("http://")})
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(request)
