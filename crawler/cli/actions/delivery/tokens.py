"""recrawl tokens: who may ask the HTTP API."""

from datetime import UTC, datetime, timedelta

from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say, show
from crawler.format.values import format_instant
from crawler.runtime.keys.api_tokens import ApiToken, make_token, revoke_token, tokens_of
from crawler.settings import settings


def add(name: str, *, expires: timedelta | None, as_json: bool) -> int:
    now = datetime.now(UTC)
    token = make_token(
        settings().home.resolve(), name, expires_at=now + expires if expires is not None else None, at=now
    )
    if as_json:
        print_json({"name": name, "token": token})
    else:
        say(token)
        remark("It is not shown again. The server is: recrawl serve")
    return DONE


def list_all(*, as_json: bool) -> int:
    found = tokens_of(settings().home.resolve())
    if as_json:
        print_json({"tokens": [_row(each) for each in found]})
    elif found:
        show(
            ["name", "made", "expires"],
            [
                (
                    each.name,
                    format_instant(each.made_at),
                    format_instant(each.expires_at) if each.expires_at else "never",
                )
                for each in found
            ],
        )
    else:
        say("No token was given out: recrawl tokens add NAME")
    return DONE


def revoke(name: str, *, as_json: bool) -> int:
    revoke_token(settings().home.resolve(), name)
    if as_json:
        print_json({"revoked": name})
    else:
        say(f"Nobody gets in by {name} any more")
    return DONE


def _row(token: ApiToken) -> dict[str, object]:
    return {"name": token.name, "made_at": token.made_at, "expires_at": token.expires_at}
