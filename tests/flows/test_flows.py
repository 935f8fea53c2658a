"""The flows on a real local stack: a crawl of a changing site, canceled, killed, and started in a browser."""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, sync_playwright
from prefect.blocks.system import Secret
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from pydantic import SecretStr

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, compute_page_key
from crawler.runtime.background_processes import ensure_tag, list_tagged
from crawler.runtime.host_check import LOGIN_PATH
from crawler.runtime.lifecycle import start_stack
from crawler.runtime.stack import Stack
from crawler.runtime.web_ui import find_web_ui_origin
from crawler.store import domains, report, subscriptions, tags
from crawler.store.database import Database, open_database
from crawler.store.report import EventKind
from crawler.store.subscriptions import SubscriptionOptions
from labs.demo.server import Remote, living_process
from tests.cli.test_notify import hooking
from tests.engine.crawls import crawl, recrawl, rows
from tests.flows.stage import ENDED, ask, cancel_run, complaints, run_state, settings_of, start_run
from tests.flows.stage.runner import Runner
from tests.patience import COSTLY_POLL_S, PATIENCE_S, SLOW, until

pytestmark = [pytest.mark.xdist_group("stack"), SLOW]

START = datetime.now(UTC).replace(microsecond=0)
KEY = "key-of-the-door-5Qp"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
T = TypeVar("T")


@pytest.fixture(scope="module")
def stack(home: Path) -> Stack:
    """Return the running stack, whose leases of a minute are longer than any test."""
    return start_stack(settings_of(home), report=print)


@pytest.fixture(scope="module")
def runner(stack: Stack) -> Iterator[Runner]:
    with Runner(stack) as runner:
        yield runner


@pytest.fixture
def site() -> Iterator[Remote]:
    with living_process(7, pages=90, start=START, days=3) as remote:
        yield remote


@pytest.fixture
def domain(stack: Stack, site: Remote) -> Domain:
    domain_settings = DomainSettings(allow_private=True, delay=timedelta(0), parallelism=4, exclude=("/-/",))
    authority = Authority(site.url.removeprefix("http://"))
    return in_database(
        stack, lambda db: domains.register(db, authority, scheme="http", domain_settings=domain_settings, at=START)
    )


def in_database(stack: Stack, work: Callable[[Database], Awaitable[T]]) -> T:
    async def with_database() -> T:
        async with open_database(stack.database_url) as db:
            return await work(db)

    return asyncio.run(with_database())


def fill(stack: Stack, domain: Domain) -> None:
    """Crawl the domain in this process, which is faster than a run of a flow."""
    assert in_database(stack, lambda db: crawl(db, at=START)).stats.visits > 50, domain


def holder(stack: Stack, domain: Domain) -> str | None:
    return in_database(stack, lambda db: domains.read_status(db, domain, at=datetime.now(UTC))).holder


def completed(stack: Stack, run: str, *, name: str = "Completed") -> dict[str, Any]:
    until(lambda: run_state(stack.api, run) in {*ENDED, name}, poll_s=COSTLY_POLL_S)
    found: dict[str, Any] = ask(stack.api, f"/flow_runs/{run}")
    assert found["state_name"] == name, found["state"]["message"]
    return found


def artifacts(stack: Stack, run: str) -> dict[str, dict[str, Any]]:
    """Return the artifacts of a run by kind, without those of its notifications."""
    found = ask(stack.api, "/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run]}}})
    return {artifact["type"]: artifact for artifact in found if artifact["key"] != "notify-result"}


def figures(markdown: str) -> dict[str, int]:
    """Return the counts in the last line of an artifact, by the word after them."""
    found = re.findall(r"([\d,]+) ([a-z]+)", markdown.splitlines()[-1].replace("\\", ""))
    return {word: int(count.replace(",", "")) for count, word in found}


def test_a_recrawl_shows_what_it_did_and_where(stack: Stack, runner: Runner, domain: Domain, site: Remote) -> None:
    run = completed(stack, runner.run("recrawl/recrawl", domain=domain.authority))
    assert run["name"] == f"recrawl {domain.authority}"
    tasks = ask(stack.api, "/task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}})
    assert {task["name"] for task in tasks} == {domain.authority}
    assert all(f"domain:{domain.authority}" in task["tags"] for task in tasks)

    shown = artifacts(stack, run["id"])
    result = figures(shown["markdown"]["data"])
    assert result["requests"] == site.counts.requests
    assert result["pages"] < site.counts.requests  # robots.txt is not a page
    assert shown["progress"]["data"] == 100
    assert result["added"] > 50
    assert run["state"]["message"].startswith(f"{result['added']:,} added")


@pytest.mark.soak
def test_the_artifact_of_a_run_names_what_it_found(stack: Stack, runner: Runner, domain: Domain, site: Remote) -> None:
    first = completed(stack, runner.run("recrawl/recrawl", domain=domain.authority))
    site.set_instant(START + timedelta(days=2))
    later = (START + timedelta(days=2)).isoformat()
    second = completed(stack, runner.run("recrawl/recrawl", domain=domain.authority, at=later))
    in_database(stack, lambda db: domains.set_paused(db, domain, paused=True))
    much_later = (START + timedelta(days=3)).isoformat()
    third = completed(stack, runner.run("crawl/crawl", domain=domain.authority, at=much_later))

    seen = artifacts(stack, first["id"])["markdown"]["data"]
    assert "### Added" in seen
    assert f"(<{domain.root}" in seen
    assert "### Changed" not in seen
    again = artifacts(stack, second["id"])["markdown"]["data"]
    changed = figures(again)["changed"]
    assert changed > 0
    listed = again.split("### Changed")[1].split("###")[0]
    assert listed.count("\n- **") == min(changed, 50)
    assert "~~" in listed  # the words that were replaced
    assert f"[difference](<{find_web_ui_origin(stack.home)}/page?url=" in listed
    assert f"{changed} changed" in second["state"]["message"]
    assert "markdown" not in artifacts(stack, third["id"])  # nothing was due, so there is nothing to show
    assert any(line.startswith("Visited ") for line in log_of(stack, second["id"]))
    assert f"{domain.authority} is paused; to continue: recrawl domains resume {domain.authority}" in log_of(
        stack, third["id"]
    )
    assert "paused" in third["state"]["message"]


def log_of(stack: Stack, run: str) -> list[str]:
    """Return the log lines of a run after its end."""
    wanted = {"logs": {"flow_run_id": {"any_": [run]}}}

    def lines() -> list[str]:
        return [each["message"] for each in ask(stack.api, "/logs/filter", wanted)]

    until(lambda: any("Finished in state" in line for line in lines()), poll_s=COSTLY_POLL_S)
    return lines()


@pytest.mark.soak
def test_a_site_is_added_by_its_form_and_the_forms_offer_it_from_then_on(
    stack: Stack, runner: Runner, site: Remote
) -> None:
    wishes = {"allow_private": True, "target_freshness": "90%", "max_pages": 20, "exclude": ["/-/"], "delay": "0"}
    run = completed(stack, runner.run("add/add", site=site.url, domain_settings=wishes))

    name = site.url.removeprefix("http://")
    assert run["name"] == f"add {site.url}"
    assert figures(artifacts(stack, run["id"])["markdown"]["data"])["added"] > 5
    (added,) = [listed.domain for listed in in_database(stack, domains.list_domains) if listed.domain.authority == name]
    assert added.settings.target_freshness == 0.9
    assert (added.settings.max_pages, added.settings.exclude) == (20, ("/-/",))
    offered = ask(stack.api, "/deployments/name/recrawl/recrawl")["parameter_openapi_schema"]["properties"]["domain"]
    assert {name, ""} <= set(offered["enum"])
    of_crawl = ask(stack.api, "/deployments/name/crawl/crawl")["parameter_openapi_schema"]["properties"]
    assert "" in of_crawl["domain"]["enum"]


@pytest.mark.soak
def test_the_domains_of_a_tag_are_recrawled(stack: Stack, runner: Runner, domain: Domain) -> None:
    in_database(stack, lambda db: tags.change_tags(db, [domain], add=["picked"], at=START))

    run = completed(stack, runner.run("recrawl/recrawl", tag="picked"))
    unknown = runner.run("crawl/crawl", tag="none")
    nothing = runner.run("recrawl/recrawl")
    until(lambda: {run_state(stack.api, each) for each in (unknown, nothing)} <= set(ENDED), poll_s=COSTLY_POLL_S)

    assert run["name"] == "recrawl tag picked"
    assert figures(artifacts(stack, run["id"])["markdown"]["data"])["added"] > 0
    assert "there is no tag none" in ask(stack.api, f"/flow_runs/{unknown}")["state"]["message"]
    assert "name a domain or a tag" in ask(stack.api, f"/flow_runs/{nothing}")["state"]["message"]


@pytest.mark.soak
def test_rare_settings_are_one_json_field_of_the_form(stack: Stack, runner: Runner, site: Remote) -> None:
    schema = ask(stack.api, "/deployments/name/add/add")["parameter_openapi_schema"]
    assert len(schema["definitions"]["SettingsForm"]["properties"]) == 11  # ten, and the rest

    wishes = {"allow_private": True, "delay": "0", "max_pages": 5, "more_settings": {"keep_versions": 7}}
    completed(stack, runner.run("add/add", site=site.url, crawl_now=False, domain_settings=wishes))
    wrong = runner.run("add/add", site=site.url, domain_settings={"more_settings": {"language": "?"}})
    until(lambda: run_state(stack.api, wrong) in ENDED, poll_s=COSTLY_POLL_S)

    name = site.url.removeprefix("http://")
    (added,) = [listed.domain for listed in in_database(stack, domains.list_domains) if listed.domain.authority == name]
    assert (added.settings.max_pages, added.settings.keep_versions) == (5, 7)
    assert "not a list of languages" in ask(stack.api, f"/flow_runs/{wrong}")["state"]["message"]


@pytest.mark.soak
def test_an_invalid_setting_is_reported_with_its_field(stack: Stack, runner: Runner) -> None:
    run = runner.run("add/add", site="127.0.0.1:9", domain_settings={"target_freshness": "often"})
    until(lambda: run_state(stack.api, run) in ENDED, poll_s=COSTLY_POLL_S)

    assert run_state(stack.api, run) == "Failed"
    said = ask(stack.api, f"/flow_runs/{run}")["state"]["message"]
    assert said == "Freshness target: 'often' is not a share above 0 and below 1, such as 95% or 0.95"


@pytest.mark.soak
def test_a_report_is_an_artifact_with_a_history_and_a_folder_of_pages(
    stack: Stack, runner: Runner, domain: Domain
) -> None:
    fill(stack, domain)
    for _ in range(2):
        completed(stack, runner.run("report/report", domain=domain.authority))

    kept = ask(stack.api, "/artifacts/filter", {"artifacts": {"key": {"any_": ["freshness-report"]}}})
    assert len(kept) == 2
    assert all(f"| {domain.authority} | " in each["data"] for each in kept)
    assert (stack.home / "report" / "index.html").exists()


@pytest.mark.soak
def test_the_nightly_prune_reports_what_was_deleted(stack: Stack, runner: Runner, domain: Domain) -> None:
    fill(stack, domain)
    in_database(stack, lambda db: domains.change_settings(db, domain, replace(domain.settings, quota=1), at=START))
    run = completed(stack, runner.run("prune/prune"))

    shown = artifacts(stack, run["id"])["markdown"]["data"]
    assert f"| {domain.authority} | 0 | " in shown
    assert f"{domain.authority} is " in shown
    (schedule,) = ask(stack.api, "/deployments/name/prune/prune")["schedules"]
    assert schedule["active"]


def test_important_events_have_automations(stack: Stack) -> None:
    names = {each["name"] for each in ask(stack.api, "/automations/filter", {})}
    assert {
        "recrawl: a crawl has failed",
        "recrawl: a domain is below its freshness target",
        "recrawl: estimates differ from observations",
        "recrawl: a domain's traffic is unusual",
    } <= names


@pytest.mark.soak
def test_freshness_below_the_target_fires_its_automation(stack: Stack, runner: Runner, domain: Domain) -> None:
    fill(stack, domain)
    in_database(
        stack, lambda db: domains.change_settings(db, domain, replace(domain.settings, target_freshness=0.99), at=START)
    )
    later = (START + timedelta(days=200)).isoformat()
    completed(stack, runner.run("plan/plan", domain=domain.authority, at=later))

    (event,) = until_events(stack, "recrawl.freshness.below", domain)
    assert event["payload"]["freshness"] < event["payload"]["target"] == 0.99

    def fired() -> bool:
        of_automations = {"name": ["prefect.automation.triggered"]}
        wanted = {"filter": {"event": of_automations, "occurred": {"since": START.isoformat()}}}
        events = ask(stack.api, "/events/filter", wanted)["events"]
        return any("below its freshness target" in each["resource"].get("prefect.resource.name", "") for each in events)

    until(fired, poll_s=COSTLY_POLL_S)


@pytest.mark.soak
def test_each_lease_ends_with_an_event_that_counts(stack: Stack, runner: Runner, domain: Domain) -> None:
    completed(stack, runner.run("crawl/crawl", domain=domain.authority))

    assert until_events(stack, "recrawl.lease.ended", domain)[0]["payload"]["visits"] > 0


def until_events(stack: Stack, name: str, domain: Domain) -> list[dict[str, Any]]:
    """Wait for events with this name about a domain, and return them."""
    wanted = {"filter": {"event": {"name": [name]}, "occurred": {"since": START.isoformat()}}}

    def mine() -> list[dict[str, Any]]:
        events = ask(stack.api, "/events/filter", wanted)["events"]
        return [event for event in events if event["resource"]["prefect.resource.name"] == domain.authority]

    until(lambda: bool(mine()), poll_s=COSTLY_POLL_S)
    return mine()


@pytest.mark.soak
def test_a_recrawl_of_a_prefix_visits_only_pages_under_it(
    stack: Stack, runner: Runner, domain: Domain, site: Remote
) -> None:
    fill(stack, domain)
    before = len(site.entries)
    paths = {entry.path for entry in site.entries if entry.path.count("/") > 1}
    prefix = f"/{min(paths).split('/')[1]}/"
    completed(stack, runner.run("recrawl/recrawl", domain=domain.authority, path=f"{prefix}*"))
    assert {entry.path.startswith(prefix) for entry in site.entries[before:]} == {True}


@pytest.mark.soak
def test_a_plan_sets_prices_enforces_quotas_and_reports_anomalous_traffic(
    stack: Stack, runner: Runner, domain: Domain
) -> None:
    """Record a day of hours with twenty fast visits each, and one in which all failed."""
    fill(stack, domain)
    in_database(stack, lambda db: domains.change_settings(db, domain, replace(domain.settings, quota=1), at=START))
    until_hour = START.replace(minute=0, second=0) + timedelta(hours=2)
    visits = """
        INSERT INTO visit (domain_id, key, at, outcome, status, change, evidence, conditional, requests,
                           received_bytes, saved_bytes, elapsed_ms)
        SELECT %s, sha256((h || '/' || n)::bytea), %s::timestamptz - h * interval '1 hour' + n * interval '1 minute',
               'fetched', CASE WHEN h = 1 THEN 503 ELSE 200 END, CASE WHEN h = 1 THEN 'unknown' ELSE 'unchanged' END,
               'main', false, 1, 100, 0, 50
          FROM generate_series(1, 30) h, generate_series(1, 20) n RETURNING 1
    """
    in_database(stack, lambda db: rows(db, visits, domain.id, until_hour))
    run = completed(stack, runner.run("plan/plan", at=(until_hour + timedelta(minutes=1)).isoformat()))

    shown = artifacts(stack, run["id"])["markdown"]["data"]
    (row,) = [line.strip("| ").split(" | ") for line in shown.splitlines() if f"| {domain.authority} " in line]
    assert float(row[1]) > 0
    assert row[2] == "0.25"
    until(
        lambda: any(line.startswith(f"{domain.authority}: ") for line in log_of(stack, run["id"])), poll_s=COSTLY_POLL_S
    )
    assert any(line.endswith("above its storage quota") for line in log_of(stack, run["id"]))
    assert (
        in_database(
            stack,
            lambda db: report.find_near_duplicates(db, domain, compute_page_key(domain.root), bits=3, max_pages=1),
        )
        is not None
    )
    assert in_database(stack, lambda db: report.fill_fingerprints(db, domain)) == 0  # nothing is left to do
    (event,) = until_events(stack, "recrawl.traffic.off", domain)
    assert event["payload"]["errors"] == 20
    assert event["payload"]["anomaly"].startswith("20 of 20 visits failed")


@pytest.mark.soak
def test_a_secret_block_opens_the_domain_that_names_it(stack: Stack, runner: Runner, domain: Domain) -> None:
    async def save() -> None:
        with temporary_settings({PREFECT_API_URL: stack.api.url, PREFECT_API_AUTH_STRING: stack.api.auth}):
            await Secret(value=SecretStr(KEY)).save("door-key")

    keyed = replace(domain.settings, headers=("X-Key: block:door-key",))
    in_database(stack, lambda db: domains.change_settings(db, domain, keyed, at=START))
    completed(stack, runner.run("crawl/crawl", domain=domain.authority))
    held = in_database(stack, lambda db: domains.read_status(db, domain, at=START))
    asyncio.run(save())
    later = (START + timedelta(hours=1)).isoformat()
    run = completed(stack, runner.run("crawl/crawl", domain=domain.authority, at=later))

    assert held.resume_reason == "no_secret block:door-key is not there"
    assert figures(artifacts(stack, run["id"])["markdown"]["data"])["pages"] > 50
    assert KEY not in "".join(path.read_text(errors="replace") for path in (stack.home / "logs").rglob("*.log"))


@pytest.mark.soak
def test_a_crawl_notifies_the_address_in_a_secret_block(
    stack: Stack, runner: Runner, domain: Domain, site: Remote
) -> None:
    async def save(address: str) -> None:
        with temporary_settings({PREFECT_API_URL: stack.api.url, PREFECT_API_AUTH_STRING: stack.api.auth}):
            await Secret(value=SecretStr(address)).save("hook-address")

    fill(stack, domain)
    in_database(stack, lambda db: report.append_to_feed(db, at=START))
    wish = SubscriptionOptions(
        target="block:hook-address", kinds=frozenset({EventKind.CHANGED}), allow_private=True, domain_id=domain.id
    )
    made = in_database(stack, lambda db: subscriptions.add_subscription(db, wish, at=START))
    with hooking() as hook:
        asyncio.run(save(f"{hook.url}/{KEY}"))
        site.set_instant(START + timedelta(days=2))
        later = (START + timedelta(days=2)).isoformat()
        run = completed(stack, runner.run("recrawl/recrawl", domain=domain.authority, at=later))
    after = in_database(stack, lambda db: subscriptions.find_subscription(db, made.id))
    of_run = {"flow_run_id": {"any_": [run["id"]]}, "key": {"any_": ["notify-result"]}}
    shown = ask(stack.api, "/artifacts/filter", {"artifacts": of_run})

    told = [change["url"] for document in hook.got for change in document["changes"]]
    assert after is not None
    assert after.delivered == len(told) > 0
    assert all(url.startswith(str(domain.root)) for url in told)
    assert any(f"{len(told)} changes sent" in each["data"] for each in shown)
    assert not any(KEY in each["data"] for each in shown)
    assert KEY not in "".join(path.read_text(errors="replace") for path in (stack.home / "logs").rglob("*.log"))


@pytest.mark.soak
def test_the_state_of_a_notify_run_shows_failed_deliveries(
    stack: Stack, runner: Runner, domain: Domain, site: Remote
) -> None:
    fill(stack, domain)
    in_database(stack, lambda db: report.append_to_feed(db, at=START))
    wish = SubscriptionOptions(
        target="env:NOBODY_HAS_SET_THIS", kinds=frozenset({EventKind.CHANGED}), domain_id=domain.id
    )
    made = in_database(stack, lambda db: subscriptions.add_subscription(db, wish, at=START))
    site.set_instant(START + timedelta(days=2))
    later = START + timedelta(days=2)
    in_database(stack, lambda db: recrawl(db, domain, at=later))

    an_hour_later = (later + timedelta(hours=1)).isoformat()
    tried = completed(stack, runner.run("notify/notify", at=an_hour_later), name="NotAllDelivered")
    again = completed(stack, runner.run("notify/notify", at=an_hour_later))
    in_database(stack, lambda db: subscriptions.remove_subscription(db, made.id))

    assert tried["state"]["type"] == "COMPLETED"
    assert f"Subscription {made.id} failed: env:NOBODY_HAS_SET_THIS is not available" in tried["state"]["message"]
    assert "1 subscription that failed before will be tried later" in again["state"]["message"]


@pytest.mark.soak
def test_an_audit_shows_what_it_drew(stack: Stack, runner: Runner, domain: Domain) -> None:
    run = completed(stack, runner.run("audit/audit", domain=domain.authority))

    shown = artifacts(stack, run["id"])["markdown"]["data"]
    assert f"| {domain.authority} | 0 | 0 | - | - |" in shown  # there are no pages yet


def test_the_crawl_is_scheduled_every_few_minutes(stack: Stack) -> None:
    def scheduled() -> list[datetime]:
        wanted = {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}}, "sort": "EXPECTED_START_TIME_ASC"}
        runs = ask(stack.api, "/flow_runs/filter", wanted)
        return [datetime.fromisoformat(run["expected_start_time"]) for run in runs if run["auto_scheduled"]]

    until(lambda: len(scheduled()) > 1, poll_s=COSTLY_POLL_S)
    first, second, *_ = scheduled()
    assert second - first <= timedelta(minutes=10)
    assert complaints(stack.home) == []


@pytest.mark.soak
def test_an_unregistered_domain_fails_with_a_sentence(stack: Stack, runner: Runner) -> None:
    run = runner.run("recrawl/recrawl", domain="nobody.example")

    def log() -> str:
        return "\n".join(each["message"] for each in ask(stack.api, "/logs/filter", wanted))

    wanted = {"logs": {"flow_run_id": {"any_": [run]}}}
    until(lambda: "Finished in state" in log(), poll_s=COSTLY_POLL_S)
    assert run_state(stack.api, run) == "Failed"
    assert ask(stack.api, f"/flow_runs/{run}")["state"]["message"].startswith("nobody.example is not registered")
    assert "Traceback" not in log()


@pytest.mark.soak
def test_a_cancelled_run_gives_its_domain_back(stack: Stack, runner: Runner, domain: Domain, site: Remote) -> None:
    site.slow(2)
    run = start_run(stack.api, "recrawl/recrawl", domain=domain.authority)
    until(lambda: holder(stack, domain) is not None, poll_s=COSTLY_POLL_S)
    cancel_run(stack.api, run)
    assert holder(stack, domain) is None
    site.slow(0)
    completed(stack, runner.run("recrawl/recrawl", domain=domain.authority))


def test_after_a_kill_9_of_everything_the_domain_is_free_at_once(stack: Stack, domain: Domain, site: Remote) -> None:
    fill(stack, domain)
    site.slow(2)
    run = start_run(stack.api, "recrawl/recrawl", domain=domain.authority)
    until(lambda: holder(stack, domain) is not None, poll_s=COSTLY_POLL_S)
    for process in list_tagged(ensure_tag(stack.home)):
        os.kill(process.pid, signal.SIGKILL)
    assert holder(stack, domain) is not None
    site.slow(0)
    assert start_stack(settings_of(stack.home), report=print).api.url == stack.api.url
    assert run_state(stack.api, run) == "Crashed"
    assert holder(stack, domain) is None
    last = completed(stack, start_run(stack.api, "recrawl/recrawl", domain=domain.authority))
    assert "added" not in last["state"]["message"]
    assert last["state"]["message"] != "Nothing was due"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    found = os.environ.get("RECRAWL_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium on this machine: apt-get install chromium-headless-shell")
        browser = playwright.chromium.launch(executable_path=found)
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(PATIENCE_S * 1000)
        yield page
        page.screenshot(path=tmp_path / "last.png")
        browser.close()


@pytest.mark.soak
def test_in_the_browser_a_recrawl_is_started_by_its_form_watched_and_read(
    stack: Stack, domain: Domain, page: Page, tmp_path: Path
) -> None:
    completed(stack, start_run(stack.api, "plan/plan"))  # updates the list of domains in the forms
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))

    assert stack.api.auth is not None
    page.goto(stack.api.ui_url)
    page.get_by_label("Auth string").fill(stack.api.auth)
    page.get_by_role("button", name="Log in").click()
    page.locator('a[href="/deployments"]').first.click()
    page.locator('a[href*="/deployments/deployment/"]', has_text="recrawl").click()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("Custom run").click()
    page.get_by_text("A registered domain, such as docs.example.com.").wait_for()
    page.get_by_text("One page, such as /blog/new").wait_for()
    page.locator("form .p-select-button__control").first.focus()
    page.keyboard.press("ArrowDown")
    page.get_by_text(domain.authority, exact=True).last.click()
    page.screenshot(path=tmp_path / "form.png")
    page.get_by_role("button", name="Submit").click()

    # Use the list: the notification with the same link slides out, and is covered until the form closes.
    page.locator('a[href*="/runs/flow-run/"]', has_text=f"recrawl {domain.authority}").first.click()
    page.wait_for_url("**/runs/flow-run/**")
    page.get_by_text("Completed", exact=True).first.wait_for()
    page.get_by_text(f"recrawl {domain.authority}", exact=True).first.wait_for()
    page.get_by_text("Task Runs", exact=True).first.click()
    page.get_by_text(f"domain:{domain.authority}").first.wait_for()
    page.screenshot(path=tmp_path / "run.png")

    page.get_by_text("Artifacts", exact=True).first.click()
    page.locator("a[href*='/artifacts/artifact/']", has_text="crawl-result").click()
    page.get_by_text("Visited ", exact=False).first.wait_for()
    page.screenshot(path=tmp_path / "artifact.png")
    assert "Added" in page.locator("h3").all_inner_texts()
    assert asked == {stack.api.ui_url.removeprefix("http://")}  # no requests to other servers


@pytest.mark.soak
def test_links_into_prefect_work_before_the_first_login(stack: Stack, domain: Domain, page: Page) -> None:
    run = completed(stack, start_run(stack.api, "recrawl/recrawl", domain=domain.authority))
    artifact = artifacts(stack, run["id"])["markdown"]["id"]
    assert stack.api.auth is not None
    assert page.context.browser is not None
    failed: list[str] = []
    for path in (f"/runs/flow-run/{run['id']}", f"/artifacts/artifact/{artifact}", "/deployments"):
        fresh = page.context.browser.new_page()
        fresh.on("response", lambda response: failed.append(response.url) if response.status >= 400 else None)
        fresh.goto(f"{stack.api.ui_url}{path}")
        fresh.get_by_label("Auth string").wait_for()
        assert failed == []  # no errors before the login
        fresh.get_by_label("Auth string").fill(stack.api.auth)
        fresh.get_by_role("button", name="Log in").click()
        fresh.wait_for_url(f"**{path}")
        fresh.get_by_text("recrawl", exact=False).first.wait_for()
        for elsewhere in ("//evil.example", "/.//evil.example", "https://evil.example", "/\t/evil.example", "http://["):
            fresh.goto(f"{stack.api.ui_url}{LOGIN_PATH}?redirect={quote(elsewhere, safe='')}")
            fresh.wait_for_url(lambda url: LOGIN_PATH not in url)
            assert fresh.url.startswith(f"{stack.api.ui_url}/")
        fresh.close()
    assert failed == []
