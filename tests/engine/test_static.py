"""The static server behaves like other web servers, and its log is reliable."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Barrier
from urllib.parse import urlsplit

import pytest

from tests.engine.static import StaticServer
from tests.patience import PATIENCE_S

LONG_AGO = 1_500_000_000  # seconds since 1970


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "sub dir").mkdir(parents=True)
    for name in ("index.html", "one.html", "sub dir/index.html", "plain.txt"):
        (folder / name).write_text(f"<title>{name}</title>\n", encoding="utf-8")
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    (tmp_path / "secret.html").write_text("not yours", encoding="utf-8")
    return folder


@pytest.fixture
def server(root: Path) -> Iterator[StaticServer]:
    with StaticServer(root) as running:
        yield running


@pytest.fixture
def connection(server: StaticServer) -> Iterator[HTTPConnection]:
    opened = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    yield opened
    opened.close()


def get(connection: HTTPConnection, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer, answer.read()


def test_files_folders_and_what_is_not_there(connection: HTTPConnection, root: Path) -> None:
    paths = (
        "/",
        "/one.html",
        "/one.html?x=1",
        "/sub%20dir/",
        "/plain.txt",
        "/none.html",
        "/one.html/",
        "/../secret.html",
    )
    statuses = [get(connection, path)[0].status for path in paths]
    kinds = [get(connection, path)[0].getheader("Content-Type") for path in ("/", "/plain.txt")]
    moved, _ = get(connection, "/sub%20dir")

    assert statuses == [200, 200, 200, 200, 200, 404, 404, 400]
    assert get(connection, "/%2e%2e/secret.html")[0].status == 400
    assert kinds == ["text/html", "text/plain"]
    assert (moved.status, moved.getheader("Location")) == (301, "/sub%20dir/")
    assert get(connection, "/one.html")[1] == (root / "one.html").read_bytes()


def test_a_copy_is_current_until_the_file_is_touched_or_edited(connection: HTTPConnection, root: Path) -> None:
    first, _ = get(connection, "/one.html")
    etag, date = first.getheader("ETag") or "", first.getheader("Last-Modified") or ""
    assert date == "Fri, 14 Jul 2017 02:40:00 GMT"
    asked: tuple[dict[str, str], ...] = (
        {"If_None_Match": etag},
        {"If_Modified_Since": date},
        {"If_None_Match": etag, "If_Modified_Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If_None_Match": '"other"', "If_Modified_Since": date},
    )

    assert [get(connection, "/one.html", **headers)[0].status for headers in asked] == [304, 304, 304, 200]
    os.utime(root / "one.html", (LONG_AGO + 60, LONG_AGO + 60))
    assert [get(connection, "/one.html", **headers)[0].status for headers in asked[:2]] == [200, 200]
    (root / "one.html").write_text("<title>new.html</title>!\n", encoding="utf-8")
    assert get(connection, "/one.html", **asked[0])[1] == b"<title>new.html</title>!\n"


def test_the_log_has_every_request_and_its_conditions(server: StaticServer, connection: HTTPConnection) -> None:
    _, body = get(connection, "/one.html", User_Agent="walker/1")
    get(connection, "/one.html", If_None_Match='"x"', If_Modified_Since="Thu, 01 Jan 1970 00:00:00 GMT")
    get(connection, "/one.html", "HEAD")

    full, conditional, head = server.entries
    assert (full.path, full.status, full.body_bytes, full.agent) == ("/one.html", 200, len(body), "walker/1")
    assert (conditional.if_none_match, conditional.if_modified_since) == ('"x"', "Thu, 01 Jan 1970 00:00:00 GMT")
    assert head.body_bytes == 0
    assert full.began <= full.ended <= conditional.began
    assert server.counts == {
        "requests": 3,
        "conditional": 1,
        "body_bytes": 2 * len(body),
        "most_in_flight": 1,
        "by_status": {200: 3},
    }
    server.clear()
    assert server.counts["requests"] == 0


def test_requests_sent_at_once_are_answered_in_their_order(server: StaticServer, connection: HTTPConnection) -> None:
    connection.connect()
    connection.sock.sendall(
        b"GET /one.html HTTP/1.1\r\nHost: x\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    received = b"".join(iter(lambda: connection.sock.recv(65536), b""))

    assert [line.split()[1] for line in received.splitlines() if line.startswith(b"HTTP/1.1 ")] == [b"200", b"404"]


def test_the_most_requests_in_flight_are_counted(root: Path) -> None:
    at_once = 5
    together = Barrier(at_once)
    with StaticServer(root, latency_s=0.2) as server, ThreadPoolExecutor(at_once) as pool:

        def ask(_: int) -> int:
            connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
            connection.connect()
            together.wait()
            return get(connection, "/")[0].status

        assert list(pool.map(ask, range(at_once))) == [200] * at_once
        assert server.counts["most_in_flight"] == at_once
        entries = server.entries
        assert max(sum(e.began <= entry.began < e.ended for e in entries) for entry in entries) == at_once


def test_garbage_ends_the_connection_and_not_the_server(server: StaticServer, connection: HTTPConnection) -> None:
    other = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    other.connect()
    other.sock.sendall(b"\x16\x03\x01 what\r\n\r\n")

    assert other.sock.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert other.sock.recv(65536) == b""
    assert get(connection, "/")[0].status == 200


def test_the_server_is_gone_after_its_block(root: Path) -> None:
    with StaticServer(root) as server:
        address = urlsplit(server.url)

    with pytest.raises(ConnectionRefusedError):
        HTTPConnection(address.netloc, timeout=PATIENCE_S).connect()
