"""Access tokens of the HTTP API, and its responses that are kept for repeated requests."""

import asyncio
from collections.abc import Collection
from datetime import datetime

from crawler.app.action_log import recorded
from crawler.app.actor import Permission, require_permission
from crawler.app.database import AppDatabase
from crawler.runtime.kept_responses import KeptResponse, KeptResponses
from crawler.runtime.keys.api_tokens import (
    ApiToken,
    TokenScope,
    create_token,
    find_token,
    list_tokens,
    parse_scopes,
    revoke_token,
)


@recorded("add token", "scopes", "expires_at")
async def add_token(
    db: AppDatabase, name: str, *, scopes: Collection[TokenScope], expires_at: datetime | None, at: datetime
) -> str:
    """Create a token and return it, as `create_token` does."""
    require_permission(Permission.MANAGE, "an access token")
    home = db.settings.home.resolve()
    return await asyncio.to_thread(create_token, home, name, scopes=scopes, expires_at=expires_at, at=at)


@recorded("revoke token")
async def remove_token(db: AppDatabase, name: str) -> None:
    """Revoke a token. Raises BadInput if there is none of that name."""
    require_permission(Permission.MANAGE, "an access token")
    await asyncio.to_thread(revoke_token, db.settings.home.resolve(), name)
