"""The living site over real HTTP: what is served, what is written down, what can be arranged to go wrong."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Barrier
from urllib.parse import urlsplit

import pytest

from labs.demo.server import LivingServer, Remote, living_process
from labs.demo.site import Ask, Behaviour, Serving, Site, make_site, reply
from tests.labs.demo.conftest import START
from tests.patience import PATIENCE_S, until
from tests.ports import next_port

DAY = timedelta(days=1)


@pytest.fixture
def server(site: Site) -> Iterator[LivingServer]:
    with LivingServer(site, next_port()) as living:
        yield living


def connect(url: str) -> HTTPConnection:
    return HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)


def get(connection: HTTPConnection, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer, answer.read()


def test_what_is_served_is_what_the_site_says(server: LivingServer, site: Site) -> None:
    connection = connect(server.url)
    for path in site.paths(START):
        answer, body = get(connection, path)
        said = reply(site, Ask(path), START, 0)
        assert answer.status == said.status
        assert answer.getheader("Content-Length") == str(len(body))
        if site.behaviour(path) is not Behaviour.CLOCK and site.serving(path) is not Serving.TOKEN:
            assert body == said.body


def test_a_connection_stays_open_over_many_requests_of_all_sorts(server: LivingServer) -> None:
    connection = connect(server.url)
    get(connection, "/")
    port = connection.sock.getsockname()
    first, _ = get(connection, "/about/")
    etag = first.getheader("ETag")
    assert etag is not None

    statuses = [
        get(connection, "/about/", If_None_Match=etag)[0].status,
        get(connection, "/nowhere")[0].status,
        get(connection, "/about/", "HEAD")[0].status,
        get(connection, "/about/?x=1#here")[0].status,
        get(connection, "/go/1")[0].status,
    ]

    assert statuses == [304, 404, 200, 200, 301]
    assert connection.sock.getsockname() == port


def test_the_journal_has_every_request_and_its_conditions(server: LivingServer) -> None:
    connection = connect(server.url)
    _, body = get(connection, "/about/", User_Agent="walker/1")
    get(connection, "/about/", If_None_Match='"x"', If_Modified_Since="Thu, 01 Jan 2026 00:00:00 GMT")
    get(connection, "/about/", "HEAD")
    get(connection, "/-/counts")

    full, conditional, head = server.journal.entries
    assert (full.path, full.status, full.body_bytes, full.agent) == ("/about/", 200, len(body), "walker/1")
    assert full.sent_bytes > full.body_bytes
    assert not full.is_conditional
    assert conditional.if_none_match == '"x"'
    assert conditional.if_modified_since == "Thu, 01 Jan 2026 00:00:00 GMT"
    assert (head.method, head.body_bytes) == ("HEAD", 0)
    assert full.began <= full.ended <= conditional.began
    counts = server.journal.counts
    assert (counts.requests, counts.conditional, counts.by_status) == (3, 1, {200: 3})
    server.journal.clear()
    assert server.journal.counts.requests == 0


def test_the_instant_is_set_here_or_by_a_control_call(server: LivingServer) -> None:
    remote = Remote(server.url)
    assert server.at == remote.at == START

    server.set_instant(START + DAY)
    assert remote.at == START + DAY
    remote.set_instant(START + 2 * DAY)
    assert server.at == START + 2 * DAY
    answer, _ = get(connect(server.url), "/")
    assert parsedate_to_datetime(answer.getheader("Date") or "") == START + 2 * DAY
    with pytest.raises(ValueError, match="time zone"):
        server.set_instant(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the mistake
    with pytest.raises(ValueError, match="time zone"):
        remote.set_instant(datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_most_requests_in_flight_are_counted(server: LivingServer) -> None:
    at_once = 6
    together = Barrier(at_once)
    server.slow(0.2)

    def ask(_: int) -> int:
        connection = connect(server.url)
        connection.connect()
        together.wait()
        return get(connection, "/")[0].status

    with ThreadPoolExecutor(at_once) as pool:
        assert list(pool.map(ask, range(at_once))) == [200] * at_once
    until(lambda: len(server.journal.entries) == at_once)
    assert server.journal.counts.most_in_flight == at_once
    assert most_at_once(server) == at_once
    server.journal.clear()
    connection = connect(server.url)
    for _ in range(3):
        get(connection, "/")
    until(lambda: len(server.journal.entries) == 3)
    assert server.journal.counts.most_in_flight == most_at_once(server) == 1


def most_at_once(server: LivingServer) -> int:
    """The same from the entries, as whoever reads them would find out."""
    entries = server.journal.entries
    return max(sum(e.began <= entry.began < e.ended for e in entries) for entry in entries)


def test_an_outage_lasts_from_one_instant_to_another(server: LivingServer) -> None:
    server.outage(START + DAY, START + 2 * DAY)
    connection, statuses = connect(server.url), []
    for day in (0, 1, 2):
        server.set_instant(START + day * DAY)
        statuses.append(get(connection, "/")[0].status)

    assert statuses == [200, 503, 200]


def test_an_outage_can_be_no_answer_at_all(server: LivingServer) -> None:
    server.outage(START, START + DAY, status=0)

    with pytest.raises((HTTPException, ConnectionError)):
        get(connect(server.url), "/")
    until(lambda: server.journal.counts.by_status == {0: 1})


def test_the_next_requests_can_be_refused_with_a_time_to_retry(server: LivingServer) -> None:
    server.throttle(2, retry_after="120")
    connection = connect(server.url)

    answers = [get(connection, "/")[0] for _ in range(3)]

    assert [answer.status for answer in answers] == [429, 429, 200]
    assert [answer.getheader("Retry-After") for answer in answers] == ["120", "120", None]


def test_nobody_is_served_after_closing_not_even_on_an_open_connection(site: Site) -> None:
    with LivingServer(site, next_port()) as server:
        connection = connect(server.url)
        get(connection, "/")
        url = server.url

    with pytest.raises((HTTPException, ConnectionError)):
        get(connection, "/")
    with pytest.raises(ConnectionError):
        connect(url).connect()


def test_a_slow_server_closes_at_once(site: Site) -> None:
    with LivingServer(site, next_port()) as server:
        server.slow(12 * PATIENCE_S)
        connection = connect(server.url)
        connection.request("GET", "/")

    # It is cut short: the page still comes or the connection ends, both before our patience does.
    with pytest.raises((HTTPException, ConnectionError)):
        get(connection, "/") if connection.getresponse().read() else None


def test_another_process_serves_the_same_site_and_can_be_steered() -> None:
    twin = make_site(9, pages=80, start=START, days=10)
    with living_process(9, pages=80, start=START, days=10) as remote:
        connection = connect(remote.url)
        for at in (START, twin.end):
            remote.set_instant(at)
            for path in twin.paths(at)[:40]:
                answer, body = get(connection, path)
                assert answer.status == reply(twin, Ask(path), at, 0).status
                if twin.behaviour(path) is not Behaviour.CLOCK and twin.serving(path) is not Serving.TOKEN:
                    assert body == reply(twin, Ask(path), at, 0).body
        asked = len(twin.paths(START)[:40]) + len(twin.paths(twin.end)[:40])
        # The server notes an answer a moment after it has sent it.
        until(lambda: remote.counts.requests == len(remote.entries) == asked)
        remote.clear()
        remote.throttle(1, retry_after="7")
        assert get(connection, "/")[0].getheader("Retry-After") == "7"
        remote.outage(START, twin.end + DAY, status=503)
        remote.slow(0.01)
        assert get(connection, "/")[0].status == 503
        until(lambda: remote.counts.by_status == {429: 1, 503: 1})
        url = remote.url

    with pytest.raises(ConnectionError):
        connect(url).connect()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, None])
def test_the_process_says_where_it_is_and_ends_when_told_or_when_its_owner_is_gone(
    ending: signal.Signals | None,
) -> None:
    command = [sys.executable, "-m", "labs.demo.server", "--pages", "80", "--at", "2026-01-01T00:00:00Z", "--leash"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        said = json.loads(process.stdout.readline())

        assert datetime.fromisoformat(said["at"]) == datetime(2026, 1, 1, tzinfo=UTC)
        assert get(connect(said["url"]), "/")[0].status == 200
        if ending is None:
            process.stdin.close()
        else:
            os.kill(process.pid, ending)
        assert process.wait(PATIENCE_S) == 0
