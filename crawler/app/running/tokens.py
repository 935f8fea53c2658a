"""Tokens by which programs use the HTTP API."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from crawler.runtime.keys.api_tokens import ApiToken, create_token, find_token, list_tokens, revoke_token
from crawler.settings import Settings


def add_token(settings: Settings, name: str, *, expires: timedelta | None = None, at: datetime) -> str:
    """Make a token that is valid for so long, or until it is revoked, and return it; only a hash of it is kept."""
    return create_token(settings.home.resolve(), name, expires_at=at + expires if expires is not None else None, at=at)


def list_api_tokens(settings: Settings) -> Sequence[ApiToken]:
    """Return the tokens that were made and not revoked."""
    return list_tokens(settings.home.resolve())


def remove_token(settings: Settings, name: str) -> None:
    """Revoke a token. Raises BadInput for a name that is none."""
    revoke_token(settings.home.resolve(), name)
