"""recrawl tokens: who may ask the HTTP API."""

from datetime import UTC, datetime, timedelta

from crawler.app.tokens import ApiToken, add_token, list_tokens, remove_token
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say, show
from crawler.format.values import format_instant
from crawler.settings import settings


def add(name: str, *, expires: timedelta | None, as_json: bool) -> int:
    token = add_token(settings(), name, expires=expires, at=datetime.now(UTC))
    if as_json:
        print_json({"name": name, "token": token})
    else:
        say(token)
        remark("It is not shown again. The server is: recrawl serve")
    return DONE


def list_all(*, as_json: bool) -> int:
    found = list_tokens(settings())
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
    remove_token(settings(), name)
    if as_json:
        print_json({"revoked": name})
    else:
        say(f"Nobody gets in by {name} any more")
    return DONE


def _row(token: ApiToken) -> dict[str, object]:
    return {"name": token.name, "made_at": token.made_at, "expires_at": token.expires_at}
