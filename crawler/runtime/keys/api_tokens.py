"""Tokens of the HTTP API: words that programs show, of which the home keeps names and hashes and nothing else.

A token has 256 bits of chance, so that a plain SHA-256 of it cannot be searched for what it was made of.
"""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from crawler.errors import BadInput
from crawler.runtime.keys.records import NamedRecords

TOKEN_BYTES = 32
PREFIX = "recrawl_"  # so that scanners of repositories know one when they see it
MAX_TOKENS = 100
MAX_NAME_CHARS = 64


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token that was given out. expires_at: None for one that is good until it is revoked."""

    name: str
    created_at: datetime
    expires_at: datetime | None
    digest: str = field(repr=False)

    def is_valid(self, *, at: datetime) -> bool:
        return self.expires_at is None or at < self.expires_at


TOKENS = NamedRecords("api-tokens", TypeAdapter(list[ApiToken]))


def create_token(home: Path, name: str, *, expires_at: datetime | None, at: datetime) -> str:
    """A new token of that name; it is told this once. Raises BadInput for a name that is taken or none."""
    if not name.isprintable() or not name.strip() or len(name) > MAX_NAME_CHARS:
        raise BadInput(f"a token's name is one line of up to {MAX_NAME_CHARS} characters")
    with TOKENS.edit(home) as tokens:
        if any(each.name == name for each in tokens):
            raise BadInput(f"there is a token {name} already: recrawl tokens revoke {name}, or take another name")
        if len(tokens) >= MAX_TOKENS:
            raise BadInput(f"there are {MAX_TOKENS} tokens: revoke some")
        token = f"{PREFIX}{secrets.token_urlsafe(TOKEN_BYTES)}"
        tokens.append(ApiToken(name=name, created_at=at, expires_at=expires_at, digest=_digest(token)))
    return token


def list_tokens(home: Path) -> Sequence[ApiToken]:
    """All tokens that were given out and not revoked, in the order of their names."""
    return TOKENS.read(home)


def revoke_token(home: Path, name: str) -> None:
    """Let nobody in by it any more. Raises BadInput where there is none of that name."""
    if not TOKENS.remove(home, name):
        raise BadInput(f"there is no token {name}: recrawl tokens list")


def find_token(home: Path, token: str, *, at: datetime) -> ApiToken | None:
    """The token that somebody shows; None for one that was never given out, was revoked or has expired."""
    digest = _digest(token)
    matches = [each for each in list_tokens(home) if hmac.compare_digest(each.digest, digest)]
    return matches[0] if matches and matches[0].is_valid(at=at) else None


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", errors="replace")).hexdigest()
