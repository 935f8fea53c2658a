"""Bearer tokens of the HTTP API. Only their names and hashes are stored.

A token has 256 random bits, so a plain SHA-256 hash cannot be reversed by search.
"""

import hmac
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from crawler.errors import BadInput
from crawler.runtime.keys.records import NamedRecords

MAX_TOKENS = 100
MAX_NAME_CHARS = 64


class TokenScope(StrEnum):
    """What a token may do. No scope includes another one."""

    READ = "read"  # read everything
    CRAWL = "crawl"  # request fetches: recrawl, try and report changes
    ADMIN = "admin"  # change domains, rules and subscriptions


@dataclass(frozen=True, slots=True)
class ApiToken:
    """An issued token. expires_at: None if it is valid until it is revoked.  digest: its SHA-256 hash, hexadecimal."""

    name: str
    created_at: datetime
    expires_at: datetime | None
    digest: str = field(repr=False)
    scopes: tuple[TokenScope, ...] = (TokenScope.READ,)  # files of earlier versions have none

    def is_valid(self, *, at: datetime) -> bool:
        return self.expires_at is None or at < self.expires_at


TOKENS = NamedRecords("api-tokens", TypeAdapter(list[ApiToken]))


def parse_scopes(text: str) -> tuple[TokenScope, ...]:
    """Parse a comma-separated list of scopes, such as read,crawl. Raises BadInput."""
    names = {name.strip().lower() for name in text.split(",")} - {""}
    unknown = sorted(names - set(TokenScope))
    if unknown or not names:
        raise BadInput(f"{(unknown or [text])[0]!r} is not a scope: use {', '.join(TokenScope)}")
    return tuple(scope for scope in TokenScope if scope in names)


def create_token(
    home: Path,
    name: str,
    *,
    scopes: Collection[TokenScope] = (TokenScope.READ,),
    expires_at: datetime | None,
    at: datetime,
) -> str:
    """Create a token and return it; it cannot be shown again. Raises BadInput for a bad name or too many tokens."""
    if not name.isprintable() or not name.strip() or len(name) > MAX_NAME_CHARS:
        raise BadInput(f"the name of a token must be one line of at most {MAX_NAME_CHARS} characters")
    with TOKENS.edit(home) as tokens:
        if any(each.name == name for each in tokens):
            raise BadInput(f"the token {name} already exists: use another name, or run recrawl tokens revoke {name}")
        if len(tokens) >= MAX_TOKENS:
            raise BadInput(f"there are already {MAX_TOKENS} tokens, which is the maximum: revoke some")
        token = f"recrawl_{secrets.token_urlsafe(32)}"  # a prefix, so that secret scanners recognize tokens
        tokens.append(ApiToken(name, at, expires_at, _digest(token), tuple(scopes)))
    return token


def list_tokens(home: Path) -> Sequence[ApiToken]:
    """Return all tokens that were not revoked, in the order of their names."""
    return TOKENS.read(home)


def revoke_token(home: Path, name: str) -> None:
    """Revoke a token. Raises BadInput if there is none of that name."""
    if not TOKENS.remove(home, name):
        raise BadInput(f"there is no token {name}: run recrawl tokens list to see all")


def find_token(home: Path, token: str, *, at: datetime) -> ApiToken | None:
    """Return the record of a token; None if it is unknown, revoked or expired."""
    digest = _digest(token)
    matches = [each for each in list_tokens(home) if hmac.compare_digest(each.digest, digest)]
    return matches[0] if matches and matches[0].is_valid(at=at) else None


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", errors="replace")).hexdigest()
