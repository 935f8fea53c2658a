"""The keys of a RECRAWL_HOME: the auth string of its Prefect server, and the key of its web UI, which signs tokens.

Before a command sends a key or login code to a server, the server must prove that it knows the key, because a program
of another user may listen on the port of a dead server.
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

RESPONSE_SECONDS = 30  # a server on a busy machine takes seconds; without a server the connection fails at once
LOOPBACK_NAMES = ("127.0.0.1", "localhost")
PROOF_PATH = "/recrawl/proof"
MAX_NONCE_CHARS = 64


def list_own_hosts(port: int) -> tuple[str, ...]:
    """Return the allowed Host headers of a local server."""
    return tuple(name if port == 80 else f"{name}:{port}" for name in LOOPBACK_NAMES)


def list_own_origins(port: int) -> tuple[str, ...]:
    """Return the allowed Origin headers of a local server, which are its own origins."""
    return tuple(f"http://{host}" for host in list_own_hosts(port))


def ensure_auth(home: Path) -> str:
    """Return the auth string of `home`, and create it the first time. The caller must hold the lock of the stack."""
    return ensure_secret(_get_auth_file(home), _make_auth)


def renew_auth(home: Path) -> str:
    """Replace the auth string with a new one and return it. The caller must hold the lock of the stack."""
    write_private(_get_auth_file(home), auth := _make_auth())
    return auth


def read_auth(home: Path) -> str | None:
    """Return the auth string of `home`; None if its server was never started."""
    return read_secret(_get_auth_file(home)) or None


def compute_proof(auth: str, *, port: int, nonce: str) -> str:
    """Return the proof that a server knows the key. port: the server's; a proof is not valid on another port."""
    return hmac.digest(auth.encode(), f"{port}/{nonce}".encode(), "sha256").hex()


def is_own_server(port: int, auth: str, *, patience_s: float = RESPONSE_SECONDS) -> bool:
    """Return whether the server on this local port knows the key, without sending it. auth: the key or auth string."""
    nonce = secrets.token_hex(16)
    try:
        url = f"{list_own_origins(port)[0]}{PROOF_PATH}/{nonce}"
        with urllib.request.urlopen(url, timeout=patience_s) as response:  # noqa: S310  http, to this machine
            proof = response.read(1000).decode("ascii", errors="replace")
    except (OSError, ValueError):
        return False
    return hmac.compare_digest(proof, compute_proof(auth, port=port, nonce=nonce))


def _make_auth() -> str:
    return f"recrawl:{secrets.token_urlsafe(32)}"  # Prefect needs the form user:password, with any user


def _get_auth_file(home: Path) -> Path:
    return home / "run" / "auth"


KEY_BYTES = 32
LOGIN_PATH = "/enter"
LOGIN_PURPOSE = "enter"  # of login codes, for Signer


def ensure_key(home: Path) -> str:
    """Return the key of the web UI of `home`, and create it the first time."""
    return ensure_secret(home / "run" / "pages-key", lambda: secrets.token_urlsafe(KEY_BYTES))


@dataclass(frozen=True, slots=True)
class Signer:
    """A signer of texts and tokens with a key. A signature is valid for one purpose only."""

    key: str = field(repr=False)

    def compute_mac(self, purpose: str, text: str) -> str:
        """Return the signature of a text for a purpose (HMAC-SHA256, hexadecimal)."""
        return hmac.digest(self.key.encode(), f"{purpose}\n{text}".encode(), "sha256").hex()

    def create_token(self, purpose: str, at: datetime) -> str:
        """Create a random token for a purpose, which contains its creation time."""
        payload = f"{int(at.timestamp() * 1000)}.{secrets.token_urlsafe(16)}"
        return f"{payload}.{self.compute_mac(purpose, payload)}"

    def read_token_time(self, purpose: str, token: str) -> datetime | None:
        """Return the creation time of a token for a purpose; None if its signature is invalid."""
        payload, _, mac = token.rpartition(".")
        if not payload or not hmac.compare_digest(self.compute_mac(purpose, payload).encode(), mac.encode()):
            return None
        return datetime.fromtimestamp(int(payload.partition(".")[0]) / 1000).astimezone()


def build_command_signer(home: Path) -> Callable[[str], str]:
    """Return the function that signs commands of subscriptions with the key of `home`.

    A command only runs with a valid signature, which cannot be created by mere write access to the database.
    """
    return partial(Signer(ensure_key(home)).compute_mac, "command")


def build_login_link(address: str, key: str, *, at: datetime) -> str:
    """Return a login link, which works once within twelve hours."""
    return f"{address}{LOGIN_PATH}?code={Signer(key).create_token(LOGIN_PURPOSE, at)}"
