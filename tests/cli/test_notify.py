"""recrawl notify."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from crawler.runtime.background_processes import WORKER, end_processes, start_child
from crawler.runtime.machine import ensure_private_folder
from tests.commands import RECRAWL, Done, Recrawl, Site, environ, run_here
from tests.databases import execute
from tests.patience import PATIENCE_S

FLOUR = "The mill by the river opens at nine and sells flour to whoever asks for it on a"


class Hook:
    """A webhook that records what it receives."""

    def __init__(self) -> None:
        self.status, self.url, self.got, self.came = 200, "", list[Any](), Event()
        self.told_at: list[int] = []  # the times in the signatures, as Unix time


@contextmanager
def hooking() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            hook.told_at.append(int(self.headers["webhook-timestamp"]))
            self.send_response(hook.status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            hook.came.set()

        def log_message(self, *_: object) -> None:
            """Do not log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield hook
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def hook() -> Iterator[Hook]:
    with hooking() as found:
        yield found


@pytest.fixture
def shop(site: Site, recrawl: Recrawl) -> Site:
    site.page("/", text=f"{FLOUR} Monday.")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    return site


def test_a_crawl_notifies_subscribers_of_changes(shop: Site, recrawl: Recrawl, hook: Hook) -> None:
    added = recrawl("notify", "add", hook.url, "--domain", shop.name, "--allow-private")
    assert (added.code, f"{hook.url} receives changes of {shop.name}" in added.out) == (0, True)
    assert "not signed" in added.err
    shop.page("/", text=f"{FLOUR} Friday.")
    recrawl("refresh", shop.name)

    crawled = recrawl("crawl", shop.name)

    assert "Notified: 1 change in 1 message" in crawled.err
    (document,) = hook.got
    assert document["changes"][0]["url"] == shop.url
    assert "[-Monday-]{+Friday+}" in document["text"]
    (one,) = recrawl("notify", "list", "--json").json["subscriptions"]
    assert (one["delivered"], one["waiting"], one["failures"]) == (1, 0, 0)
    assert recrawl("notify", "run").out == "Nothing is due\n"
    assert len(hook.got) == 1


def test_a_failing_target_does_not_fail_the_crawl_and_is_listed(
    shop: Site, recrawl: Recrawl, hook: Hook, database_url: str
) -> None:
    recrawl("notify", "add", hook.url, "--allow-private")
    hook.status = 500
    shop.page("/", text=f"{FLOUR} Friday.")
    recrawl("refresh", shop.name)

    crawled = recrawl("crawl", shop.name)

    assert crawled.code == 0
    assert "subscription 1 failed: status 500" in crawled.err
    listed = recrawl("notify", "list").out
    assert "1 failure in a row, status 500; next attempt" in listed
    assert "1 change\n" in listed
    left_alone = recrawl("notify", "run")
    assert (left_alone.code, left_alone.out) == (0, "Nothing was sent\n")
    assert "recrawl: subscription 1 waits until" in left_alone.complaint
    assert "1 change: status 500 (to try now: recrawl notify test 1)" in left_alone.complaint
    (waiting,) = recrawl("notify", "run", "--json").json["waiting"]
    assert (waiting["subscription"], waiting["changes"], waiting["reason"]) == (1, 1, "status 500")
    execute(database_url, "UPDATE subscription SET resume_at = now() - interval '90 seconds'")
    assert "(now)" in recrawl("notify", "list").out
    hook.status = 200
    assert recrawl("notify", "test", "1").code == 0
    assert recrawl("notify", "run").out == "1 change sent in 1 message\n"


def test_a_test_message_is_sent_at_once(recrawl: Recrawl, hook: Hook) -> None:
    recrawl("notify", "add", hook.url, "--allow-private")

    assert recrawl("notify", "test", "1").code == 0
    assert (hook.got[0]["changes"], "This is a test" in hook.got[0]["text"]) == ([], True)
    hook.status = 403
    refused = recrawl("notify", "test", "1")
    assert (refused.code, refused.complaint) == (1, f"recrawl: the test message to {hook.url} failed: status 403")


def test_dead_letters_are_listed_redelivered_or_discarded(shop: Site, recrawl: Recrawl, hook: Hook) -> None:
    recrawl("notify", "add", hook.url, "--allow-private")
    hook.status = 400
    shop.page("/", text=f"{FLOUR} Friday.")
    recrawl("refresh", shop.name)
    recrawl("crawl", shop.name)
    for day in range(1, 17):
        recrawl("notify", "run", "--at", f"2036-01-{day:02}T00:00Z")

    (letter,) = recrawl("notify", "dead", "--json").json["dead_letters"]
    assert (letter["error"], letter["subscription"]) == ("status 400", 1)
    assert letter["changes"][0]["url"] == shop.url
    assert all(abs(time.time() - at) < 300 for at in hook.told_at)  # else receivers would reject it
    assert "status 400" in recrawl("notify", "dead", "1").out
    assert recrawl("notify", "redeliver", "999").code == 1
    hook.status, before = 200, len(hook.got)
    assert recrawl("notify", "redeliver", str(letter["number"])).code == 0
    assert recrawl("notify", "run").out == "1 change sent in 1 message\n"
    assert len(hook.got) == before + 1
    assert hook.got[-1]["id"] == hook.got[0]["id"]
    assert recrawl("notify", "dead").out == "There are no dead letters\n"
    assert recrawl("notify", "discard", "--all").code == 0


def test_a_subscription_is_removed_with_what_waits(recrawl: Recrawl, hook: Hook) -> None:
    recrawl("notify", "add", hook.url, "--allow-private")

    assert recrawl("notify", "remove", "1").code == 0
    assert recrawl("notify", "list").out == "There are no subscriptions: recrawl notify add TARGET\n"
    for words in (("remove", "1"), ("test", "1"), ("run", "1"), ("dead", "1")):
        done = recrawl("notify", *words)
        assert (done.code, "there is no subscription 1" in done.complaint) == (2, True)


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("mailto://me:hunter2@mail.test?to=a@b.test",), "this address contains a secret"),
    (("tgram://123456789:hunter2hunter2hunter2/12315544/",), "this address contains a secret"),
    (("nowhere",), "a target is"),
    (("env:X", "--domain", "unknown.test"), "unknown.test"),
    (("env:X", "--pattern", "docs"), "must begin with"),
    (("env:X", "--kind", "news"), "not a kind of change"),
    (("env:X", "--below", "5"), "--selector"),
    (("env:X", "--below", "5", "--above", "3", "--selector", ".p"), "cannot be combined"),
    (("env:X", "--selector", ".p"), "(--selector) needs one of"),
    (("env:X", "--selector", "..p", "--below", "5"), "..p"),
    (("env:X", "--match", "re:("), "("),
    (("env:X", "--page", "https://unknown.test/a"), "unknown.test"),
    (("env:X", "--prefix", "/guide/"), "guide is not registered"),
    (("env:X", "--min-magnitude", "5"), "5"),
    (("env:X", "--min-magnitude", "much"), "much"),
    (("env:X", "--digest", "hourly"), "not a digest"),
    (("env:X", "--quiet-hours", "22"), "not quiet hours"),
    (("env:X", "--quiet-hours", "22-07", "--time-zone", "Mars/Phobos"), "not a time zone"),
    (("https://x.test/", "--secret", "hunter2"), "enter a reference to the secret"),
    (
        ("https://x.test/", "--secret", "env:PASSWORD_OF_TEST"),
        "env:PASSWORD_OF_TEST holds a base64 key of only 5 bytes, or",
    ),
    (
        ("http://127.0.0.1:8080/hook",),
        "127.0.0.1 are not allowed, since it is a private address; if the receiver is yours, add the",
    ),
    (
        ("json://localhost/hook",),
        "localhost are not allowed, since it is a private address; if the receiver is yours, add the",
    ),
    (("discord://4174216298/token?template=/etc/hunter2",), "the option template= would open a local file"),
    (("https://x.test/hook?Token=hunter2",), "this address contains a secret"),
    (
        ("https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/hunter2hunter2hunter2aaa",),
        "this address contains a secret",
    ),
    (("https://discord.com/api/webhooks/4174216298/hunter2hunter2",), "this address contains a secret"),
]


def test_invalid_subscriptions_are_one_line_errors(recrawl: Recrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD_OF_TEST", "hunter2")
    for arguments, why in WRONG:
        done = recrawl("notify", "add", *arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert why in done.complaint
        assert "hunter2" not in done.complaint


def test_a_subscription_is_paused_and_goes_on_from_now_or_with_what_was_missed(
    shop: Site, recrawl: Recrawl, hook: Hook
) -> None:
    def day(name: str) -> None:
        shop.page("/", text=f"{FLOUR} {name}.")
        recrawl("refresh", shop.name)
        assert recrawl("crawl", shop.name).code == 0

    recrawl("notify", "add", hook.url, "--allow-private")
    hook.status = 500
    day("Tuesday")
    hook.status = 200
    paused = recrawl("notify", "pause", "1")
    assert (paused.code, "is paused; 1 change waiting. To resume: recrawl notify resume 1" in paused.out) == (0, True)
    assert "is already paused" in recrawl("notify", "pause", "1").out
    day("Wednesday")
    assert recrawl("notify", "run").out == "Nothing is due\n"
    assert "paused   since" in recrawl("notify", "list").out
    assert recrawl("notify", "list", "--json").json["subscriptions"][0]["paused_at"]

    went_on = recrawl("notify", "resume", "1")
    assert (went_on.code, went_on.out) == (
        0,
        "Subscription 1 is resumed: it receives 1 waiting change and changes found from now on\n",
    )
    assert recrawl("notify", "run").out == "1 change sent in 1 message\n"
    assert recrawl("notify", "resume", "1").out == "Subscription 1 is not paused\n"
    assert recrawl("notify", "pause", "1", "--json").json["paused_at"]
    day("Thursday")
    assert "the changes found during the pause" in recrawl("notify", "resume", "1", "--include-missed").out
    recrawl("notify", "run")

    assert ["Tuesday" in hook.got[1]["text"], "Thursday" in hook.got[2]["text"], len(hook.got)] == [True, True, 3]
    assert recrawl("notify", "pause", "7").code == 2


def test_dead_letters_are_named_or_all_of_them(recrawl: Recrawl) -> None:
    for word in ("redeliver", "discard"):
        for arguments in ((), ("1", "--all")):
            assert recrawl("notify", word, *arguments).code == 2


def test_follow_sends_notifications_until_interrupted(
    shop: Site, recrawl: Recrawl, hook: Hook, database_url: str, tmp_path: Path
) -> None:
    recrawl("notify", "add", hook.url, "--allow-private")
    telling = subprocess.Popen(
        [RECRAWL, "notify", "run", "--follow", "--json"],
        env=environ(database_url, tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        shop.page("/", text=f"{FLOUR} Friday.")
        recrawl("refresh", shop.name)
        assert recrawl("crawl", shop.name).code == 0
        assert hook.came.wait(PATIENCE_S)
    finally:
        telling.send_signal(signal.SIGINT)
        code = telling.wait(PATIENCE_S)

    assert code == 128 + signal.SIGINT
    assert len(hook.got) == 1  # sent by one of the two processes


def test_a_command_runs_only_in_its_own_home_and_others_explain_why(
    recrawl: Recrawl, database_url: str, tmp_path: Path
) -> None:
    def elsewhere(*arguments: str) -> Done:
        return run_here(*arguments, database_url=database_url, home=tmp_path / "other")

    assert recrawl("notify", "add", "command:true").code == 0
    assert "not run here" not in recrawl("notify", "list").out

    assert elsewhere("notify", "run").out == "Nothing is due\n"  # its own home may be sending it
    asked, listed, tried = (elsewhere("notify", *words) for words in (("run", "1"), ("list",), ("test", "1")))
    in_json = elsewhere("notify", "list", "--json").json["subscriptions"][0]["not_run_here"]

    assert (asked.code, asked.out) == (1, "Nothing was sent\n")
    for said in (asked.complaint, listed.out, tried.complaint, in_json):
        assert "was added with another RECRAWL_HOME" in said
        assert "recrawl notify remove 1 and add it again with recrawl notify add" in said


def test_a_secret_that_is_not_set_is_listed(recrawl: Recrawl) -> None:
    added = recrawl("notify", "add", "env:MAIL_OF_TEST")
    listed = recrawl("notify", "list")

    assert (added.code, listed.code) == (0, 0)
    for said in (added.err, listed.out):
        assert "MAIL_OF_TEST is not set here: set it, or MAIL_OF_TEST_FILE, where notifications are sent" in said


def test_secrets_that_the_running_worker_lacks_are_remarked(
    recrawl: Recrawl, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("logs", "run"):
        ensure_private_folder(tmp_path, name)
    worker = start_child(tmp_path, WORKER, ["sleep", "600"], environment={}, facts={})
    try:
        monkeypatch.setenv("HOOK_OF_TEST", hook.url)  # as after `recrawl up`, in this shell
        monkeypatch.setenv("KEY_OF_TEST", "whsec_YSBrZXkgb2YgdGhpcyBzaGVsbA==")
        added = recrawl("notify", "add", "env:HOOK_OF_TEST", "--secret", "env:KEY_OF_TEST", "--allow-private")
        tried = recrawl("notify", "test", "1")
    finally:
        end_processes([worker.process], timeout_seconds=PATIENCE_S)

    assert (added.code, tried.code, len(hook.got)) == (0, 0, 1)
    for done in (added, tried):
        for name in ("HOOK_OF_TEST", "KEY_OF_TEST"):
            assert f"The local stack was started without {name} and cannot use it: set {name}, then" in done.err


def test_a_subscription_is_changed_option_by_option(shop: Site, recrawl: Recrawl, hook: Hook) -> None:
    recrawl("notify", "add", hook.url, "--page", shop.url, "--digest", "1h", "--min-magnitude", "5%", "--allow-private")

    changed = recrawl(
        "notify", "set", "1", "--digest", "", "--kind", "changed,failing", "--below", "9", "--selector", "p"
    )

    assert changed.out == (
        f"Subscription 1: {hook.url} receives changes of {shop.url}: when the number is below 9 in p, at least 5% of"
        " the page\n"
    )
    (one,) = recrawl("notify", "list", "--json").json["subscriptions"]
    assert (one["domain"], one["page"], one["digest"], one["kinds"]) == (
        shop.name,
        shop.url,
        None,
        ["changed", "failing"],
    )
    assert (one["min_magnitude"], one["condition"]["bound"], one["allow_private"]) == (0.05, 9.0, True)
    for arguments in (("--target", "nowhere"), ("--digest", "hourly"), ("--page", "https://unknown.test/")):
        assert recrawl("notify", "set", "1", *arguments).code == 2
    assert recrawl("notify", "list", "--json").json["subscriptions"] == [one]
    assert recrawl("notify", "set", "2", "--digest", "1h").code == 2


def test_a_new_target_gets_what_waited_for_the_old_one(shop: Site, recrawl: Recrawl, hook: Hook) -> None:
    with hooking() as broken:
        broken.status = 503
        recrawl("notify", "add", broken.url, "--allow-private")
        shop.page("/", text=f"{FLOUR} Friday.")
        recrawl("refresh", shop.name)
        recrawl("crawl", shop.name)

        assert recrawl("notify", "set", "1", "--target", hook.url).code == 0

        assert recrawl("notify", "run").out == "1 change sent in 1 message\n"
    assert hook.got[0]["id"] == broken.got[0]["id"]
    (one,) = recrawl("notify", "list", "--json").json["subscriptions"]
    assert (one["failures"], one["waiting"], one["delivered"]) == (0, 0, 1)
