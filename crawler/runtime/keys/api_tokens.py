"""Tokens of the HTTP API: words that programs show, of which the home keeps names and hashes and nothing else.

A token has 256 bits of chance, so that a plain SHA-256 of it cannot be searched for what it was made of.
"""

import hmac
import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from crawler.errors import BadInput
from crawler.runtime.machine import held
from crawler.runtime.private import private_folder, write_private

TOKEN_BYTES = 32
PREFIX = "recrawl_"  # so that scanners of repositories know one when they see it
MOST_TOKENS = 100
MOST_NAME = 64


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token that was given out. expires_at: None for one that is good until it is revoked."""

    name: str
    made_at: datetime
    expires_at: datetime | None
    digest: str = field(repr=False)

    def is_good(self, *, at: datetime) -> bool:
        return self.expires_at is None or at < self.expires_at


def make_token(home: Path, name: str, *, expires_at: datetime | None, at: datetime) -> str:
    """A new token of that name; it is told this once. Raises BadInput for a name that is taken or none."""
    if not name.isprintable() or not name.strip() or len(name) > MOST_NAME:
        raise BadInput(f"a token's name is one line of up to {MOST_NAME} characters")
    with _changing(home) as known:
        if any(each.name == name for each in known):
            raise BadInput(f"there is a token {name} already: recrawl tokens revoke {name}, or take another name")
        if len(known) >= MOST_TOKENS:
            raise BadInput(f"there are {MOST_TOKENS} tokens: revoke some")
        made = f"{PREFIX}{secrets.token_urlsafe(TOKEN_BYTES)}"
        known.append(ApiToken(name=name, made_at=at, expires_at=expires_at, digest=_digest(made)))
    return made


def tokens_of(home: Path) -> Sequence[ApiToken]:
    """All tokens that were given out and not revoked, in the order of their names."""
    try:
        text = _file(home).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    return tuple(sorted(map(_token, json.loads(text)), key=lambda each: each.name))


def revoke_token(home: Path, name: str) -> None:
    """Let nobody in by it any more. Raises BadInput where there is none of that name."""
    with _changing(home) as known:
        left = [each for each in known if each.name != name]
        if len(left) == len(known):
            raise BadInput(f"there is no token {name}: recrawl tokens list")
        known[:] = left


def token_shown(home: Path, shown: str, *, at: datetime) -> ApiToken | None:
    """The token that somebody shows; None for one that was never given out, was revoked or has expired."""
    digest = _digest(shown)
    found = [each for each in tokens_of(home) if hmac.compare_digest(each.digest, digest)]
    return found[0] if found and found[0].is_good(at=at) else None


@contextmanager
def _changing(home: Path) -> Iterator[list[ApiToken]]:
    """The tokens, to be changed; kept when the block ends well. Others wait meanwhile."""
    folder = private_folder(home, "run")
    with held(folder / "api-tokens.lock"):
        known = list(tokens_of(home))
        yield known
        written = [
            {
                "name": each.name,
                "made_at": each.made_at.isoformat(),
                "expires_at": each.expires_at.isoformat() if each.expires_at else None,
                "digest": each.digest,
            }
            for each in known
        ]
        write_private(_file(home), json.dumps(written))


def _file(home: Path) -> Path:
    return home / "run" / "api-tokens.json"


def _token(row: dict[str, str | None]) -> ApiToken:
    expires_at = row["expires_at"]
    return ApiToken(
        name=str(row["name"]),
        made_at=datetime.fromisoformat(str(row["made_at"])),
        expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
        digest=str(row["digest"]),
    )


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", errors="replace")).hexdigest()
