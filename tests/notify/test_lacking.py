"""Changes wait unjoined while the address or signing key of a target is missing."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from crawler.core.http.credentials import parse_reference
from crawler.runtime.background_processes import WORKER, end_processes, start_child
from crawler.runtime.machine import ensure_private_folder
from crawler.runtime.secrets import build_secret_finder, explain_missing_in_worker
from crawler.settings import Settings
from crawler.store import subscriptions
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, answering, register
from tests.notify.receivers import (
    Receiver,
    Shop,
    changes_of,
    deliver_at,
    delivered_changes,
    first_crawl,
    receiving,
    recrawl_at,
    subscribe,
)
from tests.patience import until

HOUR = timedelta(hours=1)
CHANGED = START + DAY
MAIL = parse_reference("env:MAIL_OF_TEST")


async def test_changes_wait_until_the_address_is_available(db: Database) -> None:
    shop = Shop()
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, "env:HOOK")
        shop.day = 1
        await recrawl_at(db, domain, at=CHANGED)
        failed = [(await deliver_at(db, at=CHANGED + n * HOUR)).failed for n in range(0, 100, 4)]  # four days
        (waiting,) = await subscriptions.list_subscriptions(db)
        done = await deliver_at(db, at=CHANGED + 101 * HOUR, secrets={"env:HOOK": receiver.url})
        known = await changes_of(db)
        after = await subscriptions.find_subscription(db, one.id)

    assert all("neither HOOK nor HOOK_FILE" in each[one.id] for each in failed)
    assert (waiting.waiting, waiting.dead, waiting.failures) == (6, 0, 25)
    assert "env:HOOK is not available" in waiting.reason
    assert (done.messages, done.changes) == (6, 6)  # a webhook gets one message per change
    assert delivered_changes(receiver) == known
    assert after is not None
    assert (after.failures, after.last_error) == (0, "")


@pytest.mark.parametrize("lacking", [{}, {"env:KEY": "hunter2"}], ids=["missing", "not base64"])
async def test_changes_wait_until_the_signing_key_is_available(db: Database, lacking: dict[str, str]) -> None:
    shop, key = Shop(), {"env:KEY": "whsec_YWJj"}
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, receiver.url, secret="env:KEY")
        shop.day = 1
        await recrawl_at(db, domain, at=CHANGED)
        failed = [
            (await deliver_at(db, at=CHANGED + n * HOUR, secrets=lacking)).failed for n in range(0, 100, 4)
        ]  # four days
        (waiting,) = await subscriptions.list_subscriptions(db)
        takes, receiver.answer = receiver.answer, lambda _: (503, "")
        await deliver_at(db, at=CHANGED + 101 * HOUR, secrets=key)
        receiver.answer = takes
        done = await deliver_at(db, at=CHANGED + 103 * HOUR, secrets=key)
        known = await changes_of(db)

    assert all("env:KEY" in each[one.id] for each in failed)
    assert (waiting.waiting, waiting.dead) == (6, 0)
    assert (done.failed, sorted(delivered_changes(receiver))) == ({}, known)


async def test_unreadable_secret_file_does_not_delay_other_subscriptions(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(2)
    monkeypatch.setenv("HOOK_OF_TEST_FILE", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GOOD_OF_TEST_FILE", str(tmp_path / "hook"))
    find = build_secret_finder(Settings(home=tmp_path))
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        (tmp_path / "hook").write_text(f"{receiver.url}\n")
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, "env:HOOK_OF_TEST")
        await subscribe(db, "env:GOOD_OF_TEST")
        shop.day = 1
        await recrawl_at(db, domain, at=CHANGED)
        done = await deliver_at(db, at=CHANGED, find=find)

    assert "HOOK_OF_TEST_FILE" in done.failed[one.id]
    assert (len(done.failed), done.messages) == (1, 2)  # the other one is in a file, as in containers


@pytest.fixture
def worker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Return the settings of a home whose worker process was started with the variables of the test."""
    for name in ("logs", "run"):
        ensure_private_folder(tmp_path, name)
    child = start_child(tmp_path, WORKER, ["sleep", "600"], environment=request.param, facts={})
    until(lambda: Path(f"/proc/{child.process.pid}/cmdline").read_bytes().startswith(b"sleep"))  # not its parent's yet
    yield Settings(home=tmp_path)
    end_processes([child.process], timeout_seconds=10)


@pytest.mark.parametrize("worker", [{"OTHER": "1"}], indirect=True)
def test_stack_without_the_variable_is_reported(worker: Settings) -> None:
    assert explain_missing_in_worker(worker, MAIL) == (
        "the local stack was started without MAIL_OF_TEST and cannot use it: "
        "set MAIL_OF_TEST, then run recrawl down and recrawl up"
    )
    assert explain_missing_in_worker(worker, parse_reference("block:mail")) == ""


@pytest.mark.parametrize("worker", [{"MAIL_OF_TEST": "a"}, {"MAIL_OF_TEST_FILE": "/run/secrets/mail"}], indirect=True)
def test_stack_with_the_variable_or_its_file_is_accepted(worker: Settings) -> None:
    assert explain_missing_in_worker(worker, MAIL) == ""


@pytest.mark.parametrize("worker", [{"MAIL_OF_TEST": "a"}], indirect=True)
def test_stack_with_another_value_is_reported(worker: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_OF_TEST", "b")

    assert "was started with another value of MAIL_OF_TEST" in explain_missing_in_worker(worker, MAIL)


def test_check_needs_a_worker_of_this_home_or_an_external_database(tmp_path: Path) -> None:
    assert "MAIL_OF_TEST" not in os.environ
    assert explain_missing_in_worker(Settings(home=tmp_path, database_url=None), MAIL) == ""
    assert "MAIL_OF_TEST_FILE" in explain_missing_in_worker(
        Settings(home=tmp_path, database_url="postgresql:///x"), MAIL
    )
