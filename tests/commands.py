"""The command as a user types it: in this process where that is enough, as a process of its own where it matters."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest

from crawler.cli import main
from crawler.cli.output import get_stderr, get_stdout
from crawler.settings import get_settings
from tests.patience import PATIENCE_S
from tests.ports import next_port

RECRAWL = Path(sys.executable).with_name("recrawl")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line of an error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


Recrawl = Callable[..., Done]


def environ(database_url: str | None, home: Path) -> dict[str, str]:
    """What a process of its own is started with."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RECRAWL_", "PREFECT_"))}
    plain["RECRAWL_PROBE_SITEMAPS"] = "false"  # tests count each request to their servers
    plain["RECRAWL_POSTGRES_IDLE_TIME"] = "0"  # no test leaves a process behind
    return plain | {"RECRAWL_HOME": str(home)} | ({"RECRAWL_DATABASE_URL": database_url} if database_url else {})


def command(*arguments: str, database_url: str | None, home: Path, stdin: str = "") -> Done:
    """Run the command as a process."""
    done = subprocess.run(
        [RECRAWL, *arguments],
        env=environ(database_url, home),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def forget() -> None:
    """What a process remembers of its environment."""
    for remembered in (get_settings, get_stdout, get_stderr):
        remembered.cache_clear()


@contextmanager
def in_this_process(database_url: str | None, home: Path) -> Iterator[Recrawl]:
    """Run commands in this process, with the environment of `environ`. `main` of another program may be given."""
    terminate = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("RECRAWL_", "PREFECT_")):
                patch.delenv(name)
        for name, value in environ(database_url, home).items():
            patch.setenv(name, value)

        def run(*arguments: str, stdin: str = "", main: Callable[[Sequence[str]], int] = main) -> Done:
            said, complained = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            forget()
            with redirect_stdout(said), redirect_stderr(complained):
                code = main(arguments)
            return Done(code, *(stream.buffer.getvalue().decode() for stream in (said, complained)))

        yield run
    signal.signal(signal.SIGTERM, terminate)
    forget()


def run_here(*arguments: str, database_url: str | None, home: Path, stdin: str = "") -> Done:
    """Run one command like `command`, but in this process, which saves a second."""
    with in_this_process(database_url, home) as run:
        return run(*arguments, stdin=stdin)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the site says at a path. endless: as many bytes as the client takes."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),)
    endless: bool = False


@dataclass(slots=True)
class Site:
    """A web site that a test can change; what is not there is a 404."""

    url: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    languages: list[str | None] = field(default_factory=list)  # Accept-Language of each request
    asked_at: list[float] = field(default_factory=list)  # monotonic seconds
    gate: Lock = field(default_factory=Lock)  # while it is held, nobody gets an answer

    @property
    def name(self) -> str:
        return self.url.split("/")[2]

    def page(self, path: str, *links: str, text: str = "some words to read") -> None:
        anchors = " ".join(f'<a href="{link}">{link}</a>' for link in links)
        self.answers[path] = Answer(f"<html><title>{path}</title><p>{text}</p>{anchors}</html>".encode())


@contextmanager
def serving() -> Iterator[Site]:
    """Serve a site of three pages that link to each other."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.asked.append(self.path)
            site.languages.append(self.headers.get("Accept-Language"))
            site.asked_at.append(time.monotonic())
            with site.gate:
                pass
            answer = site.answers.get(self.path, Answer(b"nothing here", status=404))
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(10**9 if answer.endless else len(answer.body)))
            self.end_headers()
            try:
                for _ in range(10**9 // 65536 if answer.endless else 0):
                    self.wfile.write(bytes(65536))
            except ConnectionError:
                self.close_connection = True
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Not to the test's output."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that hangs up is what some tests are about."""

    server = Server(("127.0.0.1", next_port()), Handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    site.page("/", "/one", "/two")
    site.page("/one", "/two")
    site.page("/two", "/")
    yield site
    server.shutdown()
    server.server_close()
    thread.join()
