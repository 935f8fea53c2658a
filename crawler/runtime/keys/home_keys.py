"""The keys of a home: the auth string of its Prefect server, the key of its pages, and what is signed with that.

Who knows one is the user, and nobody else is let in. Before a command sends one anywhere, what answers at the server's
address has to prove that it knows it, too: while the server is dead, any user of the machine may listen on its port.
"""

import hmac
import secrets
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from crawler.runtime.machine import ensure_secret, read_secret, write_private

AUTH_USER = "recrawl"  # Prefect's is of the form user:password, and any user will do
RESPONSE_SECONDS = 30  # a server that is not there refuses at once; one on a busy machine takes seconds
LOOPBACK_NAMES = ("127.0.0.1", "localhost")
HTTP_PORT = 80
PROOF_PATH = "/recrawl/proof"
MAX_NONCE_CHARS = 64


def list_own_hosts(port: int) -> tuple[str, ...]:
    """By which names a server of this machine may be called in a request's Host."""
    return tuple(name if port == HTTP_PORT else f"{name}:{port}" for name in LOOPBACK_NAMES)


def list_own_origins(port: int) -> tuple[str, ...]:
    """Whose pages may ask: those that the server itself has served."""
    return tuple(f"http://{host}" for host in list_own_hosts(port))


def ensure_auth(home: Path) -> str:
    """The auth string of `home`, made the first time. The lock of the stack is held."""
    return ensure_secret(_get_auth_file(home), _make_auth)


def renew_auth(home: Path) -> str:
    """Another auth string than any before, for good. The lock of the stack is held."""
    write_private(_get_auth_file(home), auth := _make_auth())
    return auth


def read_auth(home: Path) -> str | None:
    """The auth string of `home`; None where no server of it has ever been started."""
    return read_secret(_get_auth_file(home)) or None


def compute_proof(auth: str, *, port: int, nonce: str) -> str:
    """What only a server that knows the auth string can say. port: its own, so that none can pass on another's."""
    return hmac.digest(auth.encode(), f"{port}/{nonce}".encode(), "sha256").hex()


def is_own_server(port: int, auth: str) -> bool:
    """Whether the server that answers at this port of the machine knows the auth string; it is not told."""
    nonce = secrets.token_hex(16)
    try:
        url = f"{list_own_origins(port)[0]}{PROOF_PATH}/{nonce}"
        with urllib.request.urlopen(url, timeout=RESPONSE_SECONDS) as response:  # noqa: S310  http, to this machine
            proof = response.read(1000).decode("ascii", errors="replace")
    except (OSError, ValueError):
        return False
    return hmac.compare_digest(proof, compute_proof(auth, port=port, nonce=nonce))


def _make_auth() -> str:
    return f"{AUTH_USER}:{secrets.token_urlsafe(32)}"


def _get_auth_file(home: Path) -> Path:
    return home / "run" / "auth"


KEY_BYTES = 32
LOGIN_PATH = "/enter"
LOGIN_PURPOSE = "enter"  # what a code is good for


def ensure_key(home: Path) -> str:
    """The key of the pages of `home`, made the first time; its owner alone can read it."""
    return ensure_secret(home / "run" / "pages-key", lambda: secrets.token_urlsafe(KEY_BYTES))


@dataclass(frozen=True, slots=True)
class Signer:
    """Texts that nobody can make or change who does not know the key."""

    key: str = field(repr=False)

    def compute_mac(self, purpose: str, text: str) -> str:
        """The proof that the text was made for this purpose by somebody who knows the key."""
        return hmac.digest(self.key.encode(), f"{purpose}\n{text}".encode(), "sha256").hex()

    def create_token(self, purpose: str, at: datetime) -> str:
        """A new word that is good for a purpose, with the instant at which it was made."""
        payload = f"{int(at.timestamp() * 1000)}.{secrets.token_urlsafe(16)}"
        return f"{payload}.{self.compute_mac(purpose, payload)}"

    def read_token_time(self, purpose: str, token: str) -> datetime | None:
        """When a word was made for that purpose; None for one that was not made here."""
        payload, _, mac = token.rpartition(".")
        if not payload or not hmac.compare_digest(self.compute_mac(purpose, payload).encode(), mac.encode()):
            return None
        return datetime.fromtimestamp(int(payload.partition(".")[0]) / 1000).astimezone()


def build_command_signer(home: Path) -> Callable[[str], str]:
    """Return what makes the proof that the user of `home` has set a command.

    A subscription's command is run only where its seal is that of the home: who merely writes to a database can make
    none.
    """
    return partial(Signer(ensure_key(home)).compute_mac, "command")


def build_login_link(address: str, key: str, *, at: datetime) -> str:
    """The address that lets its user in, once and for half a day."""
    return f"{address}{LOGIN_PATH}?code={Signer(key).create_token(LOGIN_PURPOSE, at)}"
