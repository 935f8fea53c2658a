"""Tokens by which programs use the HTTP API."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from crawler.runtime.keys.api_tokens import ApiToken, make_token, revoke_token, token_shown, tokens_of
from crawler.settings import Settings


def add_token(settings: Settings, name: str, *, expires: timedelta | None = None, at: datetime) -> str:
    """Make a token that is valid for so long, or until it is revoked, and return it; only a hash of it is kept."""
    return make_token(settings.home.resolve(), name, expires_at=at + expires if expires is not None else None, at=at)


def list_tokens(settings: Settings) -> Sequence[ApiToken]:
    """Return the tokens that were made and not revoked."""
    return tokens_of(settings.home.resolve())


def remove_token(settings: Settings, name: str) -> None:
    """Revoke a token. Raises BadInput for a name that is none."""
    revoke_token(settings.home.resolve(), name)
