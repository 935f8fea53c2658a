"""A real static web server for a folder, in a separate process, fast enough that a crawler does not wait for it.

It reads files on every request, so that changes are visible at once. Validators are like those of nginx: ETag from time
and size, Last-Modified from the time. It uses only the standard library. As a script,
`python tests/engine/static.py FOLDER [--port N] [--latency SECONDS]` serves and prints its URL as a line of JSON.
"""

import argparse
import asyncio
import json
import mimetypes
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

PATIENCE_S = 300.0  # ample time for the process to start, respond to a control call, or end
LONGEST_HEAD = 64 * 1024  # bytes of request line and headers
CONTROL = "/-/"  # paths below it control the server and are not logged


@dataclass(frozen=True, slots=True)
class Entry:
    """A request and its response. began and ended: seconds of the machine's monotonic clock."""

    path: str
    status: int
    body_bytes: int
    began: float
    ended: float
    if_none_match: str | None
    if_modified_since: str | None
    agent: str | None

    @property
    def is_conditional(self) -> bool:
        return self.if_none_match is not None or self.if_modified_since is not None


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    headers: Mapping[str, str]  # names in lower case


@dataclass(frozen=True, slots=True)
class Version:
    """A file as it was at a certain time."""

    mtime_ns: int
    size: int
    body: bytes
    headers: tuple[tuple[str, str], ...]  # content type and validators


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class Folder:
    """The files below a folder as responses; the last version of each is kept in memory."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._versions: dict[str, Version] = {}

    def answer(self, request: Request) -> Answer:
        path = unquote(urlsplit(request.target).path)
        if request.method not in {"GET", "HEAD"}:
            return told(405)
        if "\0" in path or not path.startswith("/") or ".." in path.split("/"):
            return told(400)
        try:
            version = self._version(path + "index.html" if path.endswith("/") else path)
        except IsADirectoryError:
            return told(301, ("Location", urlsplit(request.target).path + "/"))
        except OSError:
            return told(404)
        if is_current(request.headers, dict(version.headers)):
            return Answer(304, version.headers[1:])
        return Answer(200, version.headers, version.body)

    def _version(self, path: str) -> Version:
        """Return the file as it is now. Raise OSError if there is none."""
        file = self._root / path.lstrip("/")
        now, known = file.stat(), self._versions.get(path)
        if known is None or (known.mtime_ns, known.size) != (now.st_mtime_ns, now.st_size):
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            headers = (
                ("Content-Type", kind),
                ("ETag", f'"{now.st_mtime_ns:x}-{now.st_size:x}"'),
                ("Last-Modified", formatdate(now.st_mtime, usegmt=True)),
            )
            known = self._versions[path] = Version(now.st_mtime_ns, now.st_size, file.read_bytes(), headers)
        return known


def told(status: int, *headers: tuple[str, str]) -> Answer:
    phrase = HTTPStatus(status).phrase
    body = f"<!DOCTYPE html>\n<title>{phrase}</title>\n<h1>{status} {phrase}</h1>\n".encode()
    return Answer(status, (("Content-Type", "text/html"), *headers), body)


def is_current(asked: Mapping[str, str], said: Mapping[str, str]) -> bool:
    """Return whether the client's copy is current: by ETag if one is given, else by date (RFC 9110, 13.2.2)."""
    if (tags := asked.get("if-none-match")) is not None:
        return bool({tag.strip().removeprefix("W/") for tag in tags.split(",")} & {"*", said["ETag"]})
    if (date := asked.get("if-modified-since")) is not None:
        try:
            return parsedate_to_datetime(said["Last-Modified"]) <= parsedate_to_datetime(date)
        except ValueError:
            return False
    return False


class Log:
    """All requests since the start or the last clearing."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.clear()

    def clear(self) -> None:
        self.entries: list[Entry] = []
        self.most_in_flight = self.in_flight

    def begin(self) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def end(self, entry: Entry) -> None:
        self.in_flight -= 1
        self.entries.append(entry)

    def counts(self) -> dict[str, Any]:
        return {
            "requests": len(self.entries),
            "conditional": sum(entry.is_conditional for entry in self.entries),
            "body_bytes": sum(entry.body_bytes for entry in self.entries),
            "most_in_flight": self.most_in_flight,
            "by_status": Counter(entry.status for entry in self.entries),
        }


class Connection(asyncio.Protocol):
    """A kept-alive connection: requests are handled in order, one at a time."""

    def __init__(self, folder: Folder, log: Log, latency_s: float) -> None:
        self._folder, self._log, self._latency_s = folder, log, latency_s
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._is_answering = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._is_answering:
            self._next()

    def _next(self) -> None:
        """Begin with the next request if its head is complete. Bodies of requests are not supported."""
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            if len(head) > LONGEST_HEAD:
                self._transport.close()
            return
        self._received = rest
        request = parsed(head)
        if request is None:
            self._send(told(400), close=True)
        elif request.target.startswith(CONTROL):
            self._send(self._control(request.target))
            self._next()
        else:
            self._is_answering = True
            self._log.begin()
            began = monotonic()
            if self._latency_s:
                self._loop.call_later(self._latency_s, self._answer, request, began)
            else:
                self._answer(request, began)

    def _answer(self, request: Request, began: float) -> None:
        answer = self._folder.answer(request)
        body_bytes = 0 if request.method == "HEAD" else len(answer.body)
        self._send(answer, without_body=request.method == "HEAD", close=request.headers.get("connection") == "close")
        asked = request.headers.get
        entry = Entry(
            request.target,
            answer.status,
            body_bytes,
            began,
            monotonic(),
            asked("if-none-match"),
            asked("if-modified-since"),
            asked("user-agent"),
        )
        self._log.end(entry)
        self._is_answering = False
        if self._received:
            self._next()

    def _control(self, target: str) -> Answer:
        match target:
            case "/-/entries":
                given: object = [asdict(entry) for entry in self._log.entries]
            case "/-/counts":
                given = self._log.counts()
            case "/-/clear":
                self._log.clear()
                given = None
            case _:
                return told(404)
        return Answer(200, (("Content-Type", "application/json"),), json.dumps(given).encode())

    def _send(self, answer: Answer, *, without_body: bool = False, close: bool = False) -> None:
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}", f"Date: {formatdate(usegmt=True)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        if answer.status != 304:
            lines.append(f"Content-Length: {len(answer.body)}")
        head = "\r\n".join((*lines, "", "")).encode("latin-1")
        self._transport.write(head if without_body else head + answer.body)
        if close:
            self._transport.close()


def parsed(head: bytes) -> Request | None:
    """Parse the head of a request; return None if it is invalid."""
    first, *lines = head.decode("latin-1").split("\r\n")
    match first.split(" "):
        case [method, target, "HTTP/1.1"]:
            pairs = (line.partition(":") for line in lines)
            return Request(method, target, {name.strip().lower(): value.strip() for name, _, value in pairs})
        case _:
            return None


class StaticServer:
    """The server in a separate process, as a context manager. It ends with the block, or with this process."""

    def __init__(self, root: Path, *, port: int = 0, latency_s: float = 0.0) -> None:
        command = [sys.executable, __file__, str(root), "--port", str(port), "--latency", str(latency_s), "--leash"]
        # In a separate process group, so that signals to the crawler's group do not reach the server.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OSError(f"the static server did not start: {self._process.wait(PATIENCE_S)}")
        self.url: str = json.loads(line)["url"]  # without a slash at the end
        self.pid = self._process.pid

    @property
    def entries(self) -> list[Entry]:
        """Return every request since the start or the last clearing, in the order in which they ended."""
        return [Entry(**given) for given in self._ask("/-/entries")]

    @property
    def counts(self) -> dict[str, Any]:
        """Return requests, conditional, body_bytes, most_in_flight and by_status."""
        given: dict[str, Any] = self._ask("/-/counts")
        return given | {"by_status": {int(status): number for status, number in given["by_status"].items()}}

    def clear(self) -> None:
        self._ask("/-/clear")

    def close(self) -> None:
        self._process.terminate()
        with self._process:
            self._process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, path: str) -> Any:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


async def serve(root: Path, port: int, latency_s: float, *, leash: bool) -> None:
    folder, log, loop = Folder(root), Log(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(folder, log, latency_s), "127.0.0.1", port, backlog=1024)
    host, chosen = server.sockets[0].getsockname()
    sys.stdout.write(json.dumps({"url": f"http://{host}:{chosen}"}) + "\n")
    sys.stdout.flush()
    if leash:
        # A thread waits for the end of the input, which means that the parent has ended.
        await loop.run_in_executor(None, sys.stdin.read)
    else:
        await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description="Serve a folder as nginx would.")
    options.add_argument("root", type=Path)
    options.add_argument("--port", type=int, default=0, help="0: a free one")
    options.add_argument("--latency", type=float, default=0.0, metavar="SECONDS", help="before every answer")
    options.add_argument("--leash", action="store_true", help="stop when standard input ends, as when the owner dies")
    given = options.parse_args(arguments)
    asyncio.run(serve(given.root, given.port, given.latency, leash=given.leash))


if __name__ == "__main__":
    main()
