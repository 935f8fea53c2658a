"""The services of compose.yaml without containers: started, checked, stopped and killed like by a container engine."""

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from benchmarks.fleet.findings import fleet_of, problems
from benchmarks.fleet.leases import Killed, LeaseWatch, recorded_pages
from benchmarks.fleet.sites import SiteRequest, name_of, read_log
from benchmarks.fleet.trial import helper
from crawler.runtime.background_processes import SERVICE_TAG
from crawler.runtime.machine import find_free_port
from labs.demo.server import Remote, living_process
from tests.commands import run_here
from tests.databases import execute
from tests.flows.stage import ENDED, ask, run_state, start_run
from tests.patience import COSTLY_POLL_S, SLOW, until
from tests.runtime.service.composed import Place, Running

DEPLOYMENTS = Path(__file__).parents[3] / "deployments" / "prefect.yaml"

# The sites and pages of three workers; benchmarks/fleet has the long version.
SITES = int(os.environ.get("RECRAWL_FLEET_SITES", "6"))
PAGES = 14
DELAY_S = 0.5
LEASE_TERM_S = 10

pytestmark = [pytest.mark.xdist_group("service"), SLOW]


FLEET = {
    "RECRAWL_LEASE_TERM": str(LEASE_TERM_S),
    "RECRAWL_REQUEST_TIMEOUT": "5",
    "RECRAWL_CONCURRENT_DOMAINS": "2",
    "RECRAWL_MAX_BATCH_AGE": "1",
    "RECRAWL_PARSER_PROCESSES": "1",
}


@pytest.fixture(scope="module")
def place(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Create two databases and a user like in the Postgres image."""
    mark = uuid.uuid4().hex[:8]
    databases = {"crawl": f"crawl_{mark}", "prefect": f"prefect_{mark}"}
    # The user name is global on the server, which other tests also use.
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
    """Run `deploy`, as before the start of any worker."""
    done = place.run("deploy")
    assert done.returncode == 0, done.stderr
    many = DEPLOYMENTS.read_text(encoding="utf-8").count("entrypoint:")
    assert f"Deployments: {many} registered" in done.stdout
    return place


@pytest.fixture
def site() -> Iterator[Remote]:
    with living_process(11, pages=90, start=datetime.now(UTC).replace(microsecond=0), days=2) as remote:
        yield remote


@pytest.mark.soak
def test_second_deploy_changes_nothing(deployed: Place) -> None:
    done = deployed.run("deploy")
    assert (done.returncode, done.stdout.strip()) == (0, "Deployments: up to date")
    assert all(json.loads(line)["level"] == "info" for line in done.stderr.splitlines())


@pytest.mark.soak
def test_prefect_server_needs_the_auth_string(deployed: Place) -> None:
    request = urllib.request.Request(f"{deployed.api.url}/flows/filter", b"{}", {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request)
    assert {each["name"] for each in ask(deployed.api, "/deployments/filter", {})} >= {"crawl", "plan", "audit"}
    settings = ask(deployed.api, "/admin/settings")["server"]
    assert settings["ui"]["api_url"] == deployed.api.url


def test_worker_crawls_and_shuts_down_cleanly(deployed: Place, site: Remote) -> None:
    with deployed.running("worker") as worker:
        add = ("domains", "add", site.url, "--allow-private", "--delay", "0.2")
        assert run_here(*add, database_url=deployed.database_url, home=deployed.folder).code == 0
        run = start_run(deployed.api, "crawl/crawl")
        until(lambda: run_state(deployed.api, run) in {"Running", *ENDED}, poll_s=COSTLY_POLL_S)
        until(lambda: rows(deployed, "SELECT coalesce(sum(visits), 0) FROM report_page") > 3, poll_s=COSTLY_POLL_S)

        assert worker.end() == 0

    assert run_state(deployed.api, run) == "Cancelled"
    assert rows(deployed, "SELECT count(*) FROM report_domain WHERE holder IS NULL") == 1
    lines = worker.log.read_text().splitlines()
    assert [line for line in lines if not line.startswith("{")] == []


@pytest.mark.soak
def test_web_ui_is_reached_by_the_address_in_compose(deployed: Place) -> None:
    with deployed.running("pages"):
        told = deployed.run("pages", "recrawl", "ui", "--json")
        own = f"http://127.0.0.1:{deployed.ports['4280']}"
        entrance = deployed.run("pages", "recrawl", "ui").stdout.split()[-1] if told.returncode else ""
        address = entrance or json.loads(told.stdout)["web_ui"]
        assert address.startswith(f"{own}/enter?code=")
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert "recrawl" in opener.open(address).read().decode()
        for wrong in (f"http://localhost.evil.example:{deployed.ports['4280']}", "http://pages.example.com:4280"):
            request = urllib.request.Request(own, headers={"host": wrong.removeprefix("http://")})
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(request)
        token = json.loads(deployed.run("pages", "recrawl", "tokens", "add", "search", "--json").stdout)["token"]
        asked = {"host": f"pages:{deployed.ports['4280']}", "authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{own}/api/v1/domains", headers=asked)
        assert "items" in json.loads(urllib.request.urlopen(request).read())


@pytest.mark.soak
def test_changes_of_a_finished_run_are_delivered(deployed: Place, site: Remote) -> None:
    with deployed.running("worker", "counting") as worker:
        added = deployed.run("worker", "recrawl", "domains", "add", site.url, "--allow-private", "--max-pages", "20")
        assert added.returncode == 0, added.stderr
        run = start_run(deployed.api, "crawl/crawl", pages=12)
        until(lambda: worker.lives() and run_state(deployed.api, run) in ENDED, poll_s=COSTLY_POLL_S)
        own = f"http://127.0.0.1:{deployed.ports['9464 counting']}"
        found = dict(values_at(f"{own}/metrics"))
        alive = urllib.request.urlopen(f"{own}/alive").status

    assert alive == 200
    assert run_state(deployed.api, run) == "Completed"
    assert found["recrawl_requests_total"] >= 12
    assert found["recrawl_lease_seconds_count"] >= 1
    assert found['recrawl_processes{role="worker"}'] == 1


def values_at(url: str) -> Iterator[tuple[str, float]]:
    with urllib.request.urlopen(url) as response:
        for line in response.read().decode().splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                yield name, float(value)


@pytest.mark.soak
def test_workers_continue_while_one_is_killed_and_the_server_is_down(
    deployed: Place, server: Running, postgres_url: str, tmp_path: Path
) -> None:
    databases = dict(deployed.databases) | {"crawl": f"fleet_{uuid.uuid4().hex[:8]}"}
    execute(postgres_url, f"CREATE DATABASE {databases['crawl']} OWNER recrawl TEMPLATE template0")
    several = replace(deployed, limit="1", settings=FLEET, folder=tmp_path, databases=databases)
    port, log = find_free_port(str(tmp_path), excluded=tuple(deployed.ports.values())), tmp_path / "asked.tsv"
    addresses = [f"127.0.0.{2 + n}" for n in range(SITES)]
    paths = frozenset({"/"} | {f"/{name_of(n)}" for n in range(1, PAGES)})

    def asked() -> list[SiteRequest]:
        return [each for each in read_log(log) if each.path in paths]

    with ExitStack() as stack:
        stack.enter_context(helper("sites", "--port", str(port), "--pages", str(PAGES), "--log", str(log), *addresses))
        assert several.run("worker", "recrawl", "db", "upgrade").returncode == 0
        origins = [f"http://{address}:{port}" for address in addresses]
        how = ["--allow-private", "--delay", str(DELAY_S), "--parallelism", "1", "--offline"]
        assert several.run("worker", "recrawl", "domains", "add", *origins, *how).returncode == 0
        workers = [stack.enter_context(several.running("worker", f"worker{n}")) for n in range(3)]
        for _ in workers:
            start_run(deployed.api, "crawl/crawl")
        watch = LeaseWatch(several.database_url)
        tags = [(several.home(f"worker{n}") / "run" / SERVICE_TAG).read_text() for n in range(3)]

        def in_the_middle() -> list[int]:
            """Return the workers that requested pages under a lease that they still hold."""
            asking = watch.requested(asked(), paths)
            return [n for n, tag in enumerate(tags) if any(len(pages) >= 3 for pages in asking.get(tag, {}).values())]

        until(lambda: len({each.site for each in asked()}) >= 3 and bool(in_the_middle()))
        victim = in_the_middle()[0]
        survivors = [n for n in range(3) if n != victim]
        workers[victim].kill()
        at = time.monotonic()
        held = watch.requested([each for each in asked() if each.began <= at], paths)[tags[victim]]
        killed = Killed(requested=held, recorded=recorded_pages(several.database_url), at=at)
        server.process.kill()
        server.process.wait()
        before = len(asked())
        until(lambda: len(asked()) > before + SITES)
        assert several.is_well("worker", f"worker{survivors[0]}"), "a probe would end a worker that crawls"
        away = several.run("worker", "recrawl", "health", replica=f"worker{survivors[0]}")
        assert away.returncode == 1
        assert "no Prefect server responds" in away.stdout

        wanted = SITES * PAGES
        until(lambda: rows(several, "SELECT count(*) FROM page WHERE version > 0") >= wanted, poll_s=COSTLY_POLL_S)
        with deployed.running("prefect"):  # it is back before the workers are stopped
            assert [workers[n].end() for n in survivors] == [0, 0]

    found = fleet_of(read_log(log), paths)
    assert problems(found, several.database_url, wanted_pages=wanted, delay_s=DELAY_S) == []
    assert killed.problems(asked()) == []
    execute(postgres_url, f"DROP DATABASE {databases['crawl']} WITH (FORCE)")


def rows(place: Place, query: str) -> int:
    with psycopg.connect(place.database_url) as connection:
        found = connection.execute(query.encode()).fetchone()
    assert found is not None
    return int(found[0])
