"""The auth string of a home's Prefect server: who knows it is the user, and nobody else is let in.

Before a command sends it anywhere, what answers at the server's address has to prove that it knows it, too: while the
server is dead, any user of the machine may listen on its port.
"""

import hmac
import secrets
import urllib.request
from pathlib import Path

from crawler.runtime.machine import ensure_secret, read_secret, write_private

AUTH_USER = "recrawl"  # Prefect's is of the form user:password, and any user will do
ANSWER_SECONDS = 30  # a server that is not there refuses at once; one on a busy machine takes seconds
NAMES = ("127.0.0.1", "localhost")
HTTP_PORT = 80
PROOF_PATH = "/recrawl/proof"
LONGEST_NONCE = 64


def own_hosts(port: int) -> tuple[str, ...]:
    """By which names a server of this machine may be called in a request's Host."""
    return tuple(name if port == HTTP_PORT else f"{name}:{port}" for name in NAMES)


def own_origins(port: int) -> tuple[str, ...]:
    """Whose pages may ask: those that the server itself has served."""
    return tuple(f"http://{host}" for host in own_hosts(port))


def ensure_auth(home: Path) -> str:
    """The auth string of `home`, made the first time. The lock of the stack is held."""
    return ensure_secret(_auth_file(home), _make_auth)


def renew_auth(home: Path) -> str:
    """Another auth string than any before, for good. The lock of the stack is held."""
    write_private(_auth_file(home), made := _make_auth())
    return made


def known_auth(home: Path) -> str | None:
    """The auth string of `home`; None where no server of it has ever been started."""
    return read_secret(_auth_file(home)) or None


def proof_of(auth: str, *, port: int, nonce: str) -> str:
    """What only a server that knows the auth string can say. port: its own, so that none can pass on another's."""
    return hmac.digest(auth.encode(), f"{port}/{nonce}".encode(), "sha256").hex()


def proves_itself(port: int, auth: str) -> bool:
    """Whether the server that answers at this port of the machine knows the auth string; it is not told."""
    nonce = secrets.token_hex(16)
    try:
        url = f"{own_origins(port)[0]}{PROOF_PATH}/{nonce}"
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response:  # noqa: S310  http, to this machine
            said = response.read(1000).decode("ascii", errors="replace")
    except (OSError, ValueError):
        return False
    return hmac.compare_digest(said, proof_of(auth, port=port, nonce=nonce))


def _make_auth() -> str:
    return f"{AUTH_USER}:{secrets.token_urlsafe(32)}"


def _auth_file(home: Path) -> Path:
    return home / "run" / "auth"
