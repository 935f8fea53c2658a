"""The auth string of a home's Prefect server: who knows it is the user, and nobody else is let in.

Before a command sends it anywhere, what answers at the server's address has to prove that it knows it, too: while the
server is dead, any user of the machine may listen on its port.
"""

import hmac
import secrets
import urllib.request
from pathlib import Path

from crawler.runtime.own_address import PROOF_PATH, own_origins, proof_of
from crawler.runtime.private import private_folder, write_private

AUTH_USER = "recrawl"  # Prefect's is of the form user:password, and any user will do
ANSWER_SECONDS = 30  # a server that is not there refuses at once; one on a busy machine takes seconds


def auth_file(home: Path) -> Path:
    return home / "run" / "auth"


def ensure_auth(home: Path) -> str:
    """The auth string of `home`, made the first time. The lock of the stack is held."""
    return known_auth(home) or renew_auth(home)


def renew_auth(home: Path) -> str:
    """Another auth string than any before, for good. The lock of the stack is held."""
    made = f"{AUTH_USER}:{secrets.token_urlsafe(32)}"
    write_private(private_folder(home, "run") / auth_file(home).name, made)
    return made


def known_auth(home: Path) -> str | None:
    """The auth string of `home`; None where no server of it has ever been started."""
    try:
        return auth_file(home).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None


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
