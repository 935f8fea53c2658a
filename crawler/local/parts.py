"""The parts of the stack, and how a later command finds what an earlier one started: notes in HOME/run, and a tag."""

import hashlib
import json
import secrets
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crawler.local.children import Child
from crawler.local.environment import api_url_of
from crawler.local.machine import Process
from crawler.settings import Settings

Report = Callable[[str], None]

CRAWL_DATABASE = "crawl"
PREFECT_DATABASE = "prefect"
ANSWER_SECONDS = 30  # a server that is not there refuses at once; one on a busy machine takes seconds
SERVER_END_SECONDS = 30
WORKER_END_SECONDS = 30
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack. server: None where the Prefect server is somebody else's."""

    home: Path
    database_url: str = field(repr=False)
    api_url: str
    server: Process | None
    worker: Process

    @property
    def ui_url(self) -> str:
        """Where people look at it."""
        return self.api_url.removesuffix("/api")


def server_note(home: Path) -> Path:
    return home / "run" / "server.json"


def worker_note(home: Path) -> Path:
    return home / "run" / "worker.json"


def stack_tag(home: Path) -> str:
    """The name of this home's stack, for good: also the first part of the name of who holds its leases."""
    file = home / "run" / "tag"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(secrets.token_hex(8), encoding="ascii")
    return file.read_text(encoding="ascii")


def is_own_api(server: Child | None, api_url: str) -> bool:
    """Whether that is the server which this stack has started."""
    return server is not None and api_url == api_url_of(int(server.facts["port"]))


def external_api(settings: Settings, server: Child | None) -> str | None:
    """The server that PREFECT_API_URL names, unless that is our own: people set it to use Prefect's own command."""
    named = settings.prefect_api_url
    if named is None or is_own_api(server, named.rstrip("/")):
        return None
    return named.rstrip("/")


def answers(api_url: str) -> bool:
    """Whether a Prefect server answers there."""
    try:
        with urllib.request.urlopen(f"{api_url}/health", timeout=ANSWER_SECONDS) as response:  # noqa: S310  http, by our own setting
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False


def home_of_server(api_url: str) -> Path | None:
    """The folder in which the Prefect server there keeps its things; None while none answers."""
    try:
        with urllib.request.urlopen(f"{api_url}/admin/settings", timeout=ANSWER_SECONDS) as response:  # noqa: S310  as above
            return Path(json.load(response)["home"])
    except (OSError, ValueError, KeyError):
        return None


def digest(text: str) -> str:
    """A secret's name in a note."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def last_words(log: Path) -> str:
    """The last line of a log, for an error of one line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'without a word'} (see {log})"
