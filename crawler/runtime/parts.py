"""The parts of the stack, and how a later command finds what an earlier one started: notes in HOME/run, and a tag."""

import hashlib
import secrets
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crawler.runtime.children import Child, noted
from crawler.runtime.environment import Api, api_url_of
from crawler.runtime.keys.auth import ANSWER_SECONDS, known_auth, proves_itself
from crawler.runtime.machine import Process
from crawler.runtime.private import private_folder, write_private
from crawler.settings import Settings

Report = Callable[[str], None]

CRAWL_DATABASE = "crawl"
PREFECT_DATABASE = "prefect"
GREETING = "Prefect server: starting at"  # what each writes into its log when it has its port
SERVER_END_SECONDS = 30
WORKER_END_SECONDS = 30
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack. server: None where the Prefect server is somebody else's."""

    home: Path
    database_url: str = field(repr=False)
    api: Api
    server: Process | None
    worker: Process

    @property
    def api_url(self) -> str:
        """Where programs ask it."""
        return self.api.url

    @property
    def ui_url(self) -> str:
        """Where people look at it."""
        return self.api.ui_url


def server_note(home: Path) -> Path:
    return home / "run" / "server.json"


def worker_note(home: Path) -> Path:
    return home / "run" / "worker.json"


def pages_note(home: Path) -> Path:
    return home / "run" / "pages.json"


def own_pages_note(home: Path) -> Path:
    """Of pages that a user serves in a terminal: nobody but that user ends them."""
    return home / "run" / "own-pages.json"


def was_set_up(home: Path) -> bool:
    """Whether a stack was ever started here."""
    return (home / "run" / "tag").exists()


def stack_tag(home: Path) -> str:
    """The name of this home's stack, for good: also the first part of the name of who holds its leases."""
    file = home / "run" / "tag"
    if not file.exists():
        write_private(private_folder(home, "run") / file.name, secrets.token_hex(8))
    return file.read_text(encoding="ascii")


def is_own_api(server: Child | None, api_url: str) -> bool:
    """Whether that is the server which this stack has started."""
    return server is not None and api_url == api_url_of(port_of(server))


def port_of(server: Child) -> int:
    return int(server.facts["port"])


def has_auth(server: Child) -> bool:
    """Whether it lets in only who knows its auth string; one that an earlier version started lets in everybody."""
    return "auth" in server.facts


def own_api(home: Path, server: Child) -> Api:
    return Api(api_url_of(port_of(server)), known_auth(home) if has_auth(server) else None)


def api_of_worker(home: Path, settings: Settings) -> Api | None:
    """The server that the worker of `home` works for; None where there is no worker, or the server does not answer."""
    worker, server = noted(worker_note(home)), noted(server_note(home))
    if worker is None:
        return None
    url, own_auth = worker.facts["api_url"], known_auth(home)
    if server is not None and is_own_api(server, url):
        api = own_api(home, server)
    elif own_auth is not None and worker.facts.get("auth") == digest(own_auth):
        return None  # our own is dead, and whoever answers at its address is somebody else
    else:
        api = external(url, settings)
    return api if answers(server, api) else None


def external(url: str, settings: Settings) -> Api:
    auth = settings.prefect_api_auth_string
    return Api(url, auth.get_secret_value() if auth is not None else None)


def external_api(settings: Settings, server: Child | None) -> Api | None:
    """The server that PREFECT_API_URL names, unless that is our own: people set it to use Prefect's own command."""
    named = settings.prefect_api_url
    if named is None or is_own_api(server, named.rstrip("/")):
        return None
    return external(named.rstrip("/"), settings)


def answers(server: Child | None, api: Api) -> bool:
    """Whether a Prefect server answers there; where it has to be our own, whether that does, and not another."""
    if server is not None and is_own_api(server, api.url) and api.auth is not None:
        return proves_itself(port_of(server), api.auth)
    try:
        with urllib.request.urlopen(f"{api.url}/health", timeout=ANSWER_SECONDS) as response:  # noqa: S310  http, by our own setting
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False


def digest(text: str) -> str:
    """A secret's name in a note."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def last_words(log: Path) -> str:
    """The last line of a log, for an error of one line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'without a word'} (see {log})"
