"""Access tokens of the HTTP API."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from crawler.runtime.keys.api_tokens import ApiToken, create_token, find_token, list_tokens, revoke_token
from crawler.settings import Settings


def add_token(settings: Settings, name: str, *, expires: timedelta | None = None, at: datetime) -> str:
    """Create and return a token; only its hash is stored. expires: how long it is valid; None until revoked."""
    return create_token(settings.home.resolve(), name, expires_at=at + expires if expires is not None else None, at=at)


def list_api_tokens(settings: Settings) -> Sequence[ApiToken]:
    """Return the tokens that are not revoked."""
    return list_tokens(settings.home.resolve())


def remove_token(settings: Settings, name: str) -> None:
    """Revoke a token. Raises BadInput for an unknown name."""
    revoke_token(settings.home.resolve(), name)
