"""Mail by apprise to a real mail server, commands, and secrecy of targets."""

import asyncio
import email
import email.policy
import json
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from crawler.errors import BadInput
from crawler.notify.sender import run_program
from crawler.notify.services import redact_secrets
from crawler.notify.target import check_target, parse_command
from crawler.store import subscriptions
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, answering, register, rows
from tests.notify.receivers import Shop, changes_of, deliver_at, first_crawl, recrawl_at, subscribe

MINUTE = timedelta(minutes=1)


class MailServer:
    """A mail server that stores messages. refuses: whether it temporarily rejects all of them."""

    def __init__(self) -> None:
        self.refuses = False
        self.mails: list[EmailMessage] = []
        self.port = 0

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.refuses:
            return "451 come back later"
        assert isinstance(envelope.content, bytes)
        self.mails.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        return "250 OK"

    @property
    def texts(self) -> list[str]:
        found = []
        for mail in self.mails:
            body = mail.get_body(("plain", "html"))
            assert body is not None
            found.append(body.get_content())
        return found


@asynccontextmanager
async def mail_server() -> AsyncIterator[MailServer]:
    """Run a mail server on loopback."""
    mails = MailServer()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(mails, hostname="mail.test"), "127.0.0.1", 0)
    mails.port = server.sockets[0].getsockname()[1]
    try:
        yield mails
    finally:
        server.close()


@pytest.mark.soak
async def test_changes_are_mailed_together_and_retried_after_a_rejection(db: Database) -> None:
    shop = Shop()
    async with mail_server() as server:
        address = f"mailto://127.0.0.1:{server.port}?from=recrawl@example.com&to=me@example.com"
        async with answering(shop.respond) as url:
            domain = await register(db, url)
            await first_crawl(db)
            await subscribe(db, check_target(address, allow_private=True))
            shop.day, server.refuses = 1, True
            await recrawl_at(db, domain, at=START + DAY)
            refused = await deliver_at(db, at=START + DAY)
            server.refuses = False
            await deliver_at(db, at=START + DAY + MINUTE)
            known = await changes_of(db)
            await deliver_at(db, at=START + DAY + 2 * MINUTE)

    assert "mailto" not in refused.failed[1]
    (mail,) = server.mails
    assert mail["subject"] == f"{domain.authority}: 6 changed"
    assert (mail["to"], "recrawl@example.com" in mail["from"]) == ("me@example.com", True)
    (text,) = server.texts
    for _, url, _ in known:
        assert url in text
    assert text.count("Today it says [-amber") == 6
    lines = text.splitlines()
    places = [lines.index(url) for _, url, _ in known]
    assert places == sorted(places)


@pytest.mark.soak
async def test_daily_digest_has_all_changes_of_the_day(db: Database) -> None:
    shop = Shop()
    async with mail_server() as server:
        address = f"mailto://127.0.0.1:{server.port}?from=recrawl@example.com&to=me@example.com"
        async with answering(shop.respond) as url:
            domain = await register(db, url)
            await first_crawl(db)
            await subscribe(db, "env:MAIL", digest="daily@07:30")
            for hour in (1, 5, 9):
                shop.day += 1
                await recrawl_at(db, domain, at=START + DAY + hour * 60 * MINUTE)
                await deliver_at(db, at=START + DAY + hour * 60 * MINUTE, secrets={"env:MAIL": address})
            before = len(server.mails)
            await deliver_at(db, at=START + 2 * DAY + 8 * 60 * MINUTE, secrets={"env:MAIL": address})

    # Two crawls before half past seven, one after it.
    assert before == 1
    assert [mail["subject"] for mail in server.mails] == [f"{domain.authority}: {n} changed" for n in (12, 6)]


SECRETS = ("hunter2-of-mail", "bot-token-4711", "secret-path-of-hook")


async def test_no_secret_of_a_target_is_stored_or_logged(db: Database, told: list[Any]) -> None:
    shop = Shop(2)
    secrets = {
        "env:MAIL": f"mailto://me:{SECRETS[0]}@127.0.0.1:1?from=a@example.com&to=b@example.com",
        "block:chat": f"json://127.0.0.1:1/{SECRETS[1]}",
        "env:HOOK": f"http://127.0.0.1:1/{SECRETS[2]}",
        "env:GONE": "",
    }
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await first_crawl(db)
        for name in secrets:
            await subscribe(db, check_target(name))
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        done = await deliver_at(db, at=START + DAY, secrets=secrets)
    tables = await rows(
        db, "SELECT to_jsonb(s)::text FROM subscription s UNION ALL SELECT to_jsonb(m)::text FROM message m"
    )
    said = [json.dumps(record.__dict__, default=str) for record in told] + [row[0] for row in tables]

    assert set(done.failed) == {1, 2, 3, 4}
    assert "env:GONE is not available" in done.failed[4]
    for text in (*said, *done.failed.values()):
        assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize(
    "target",
    [
        "mailto://me:hunter2@example.com",
        "mailto://localhost?user=me&pass=hunter2&to=a@example.com&from=a@example.com",
        "tgram://123456789:abcdefg_hijklmnop/12315544/",
        "https://me:hunter2@example.com/hook",
        "ntfys://hunter2@example.com/topic",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
        "nosuchservice://hunter2",
        "env:hunter2 hunter2",
        "env:",
        "command:",
        "command:'unclosed hunter2",
        "command:./hunter2",
        "hunter2",
        "https://",
        "http://[hunter2",
        "",
    ],
)
def test_invalid_or_secret_target_is_rejected_and_not_repeated(target: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_target(target)

    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "target",
    [
        "env:TELEGRAM",
        "block:mail-address",
        "https://example.com/hook?x=1",
        "mailto://mail.example.com?from=a@example.com&to=b@example.com",
        "json://example.com/hook",
        "command:/bin/true 'with words'",
    ],
)
def test_valid_targets_are_accepted(target: str) -> None:
    assert check_target(f" {target} ") == target


def test_errors_of_a_service_contain_no_part_of_its_address() -> None:
    url = "tgram://4711:s%20ecret-token/chat_name?thread=77001"
    said = "Failed 4711:s ecret-token for chat_name (s%20ecret-token), thread 77001: Unauthorized"

    assert redact_secrets(said, url) == "Failed *** for *** (***), *** ***: Unauthorized"


async def test_command_gets_the_message_on_stdin_and_its_exit_code_decides(db: Database, tmp_path: Path) -> None:
    shop, inbox, program = Shop(3), tmp_path / "inbox", tmp_path / "tell me.py"
    program.write_text(
        f"#!{sys.executable}\nimport os, pathlib, sys\nif pathlib.Path(sys.argv[1] + '.broken').exists():\n"
        f"    sys.exit('the disk is full')\npathlib.Path(sys.argv[1]).open('a').write(sys.stdin.read() + '\\n')\n"
        f"pathlib.Path(sys.argv[1] + '.path').write_text(os.environ.get('PYTHONPATH', 'as it is'))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    broken = tmp_path / "inbox.broken"
    broken.touch()
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, f"command:'{program}' {inbox}", signature="mine")
        await subscribe(db, f"command:'{program}' {tmp_path / 'other'}", signature="of another machine")
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        failed = await deliver_at(db, at=START + DAY)
        broken.unlink()
        for n in range(3):
            await deliver_at(db, at=START + DAY + n * MINUTE)
        known = await changes_of(db)
        _, other = await subscriptions.list_subscriptions(db)

    assert failed.failed == {1: "the program failed with exit code 1: the disk is full"}
    documents = [json.loads(line) for line in inbox.read_text().splitlines()]
    assert sorted(each["changes"][0]["position"] for each in documents) == [position for position, _, _ in known]
    assert not (tmp_path / "other").exists()
    assert (tmp_path / "inbox.path").read_text() == os.environ.get("PYTHONPATH", "as it is")
    assert other.position < known[0][0]  # it waits for the home in which it was added


async def test_hanging_command_is_killed_with_its_child_processes(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    script = f"(while true; do date > {alive}; sleep 0.05; done) & sleep 1000"

    ended = await run_program(["sh", "-c", script], b"{}" * 100_000, deadline=timedelta(seconds=0.4), environment={})
    alive.unlink(missing_ok=True)
    again = await run_program(
        ["sleep", "0.3"], b"", deadline=timedelta(seconds=30), environment={"PATH": "/usr/bin:/bin"}
    )

    assert ended == "the program did not finish within 0.4 s"
    assert again == ""
    assert not alive.exists()


async def test_missing_command_is_reported_as_a_value() -> None:
    ended = await run_program(parse_command("/nowhere/at/all x"), b"", deadline=timedelta(seconds=5), environment={})

    assert ended == "the program cannot be started: No such file or directory"
