"""recrawl tokens and feed: who may ask the HTTP API, and the addresses of Atom feeds."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from crawler.cli import values
from crawler.cli.lazy import feeds, tokens
from crawler.cli.lazy import kinds as change_kinds
from crawler.cli.options import Json, Kinds, argument, flag, option
from crawler.cli.output import pick, print_found, print_outcome, remark
from crawler.cli.session import settings, with_database
from crawler.errors import BadInput
from crawler.format.values import format_instant

app = typer.Typer(no_args_is_help=True, help="Let programs ask the HTTP API of recrawl serve, and no more.")

TokenName = Annotated[str, argument("NAME", "Whose it is, such as search or nightly-report.")]


@app.command("add")
def add(
    name: TokenName,
    expires: Annotated[
        timedelta | None, option("SPAN", "Good for so long, such as 30d; else until revoked.", parser=values.interval)
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token, and print it this once: only a hash of it is kept.

    Examples:

        recrawl tokens add search
        curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:4280/api/v1/domains
    """
    token = tokens.add_token(settings(), name, expires=expires, at=datetime.now(UTC))
    print_outcome({"name": name, "token": token}, token, as_json=as_json)
    if not as_json:
        remark("It is not shown again. The server is: recrawl serve")


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the tokens that were given out.

    Examples:

        recrawl tokens list
    """
    found = tokens.list_tokens(settings())
    rows = (
        {
            "name": each.name,
            "made": format_instant(each.made_at),
            "expires": format_instant(each.expires_at) if each.expires_at else "never",
        }
        for each in found
    )
    document = {"tokens": [pick(each, "name", "made_at", "expires_at") for each in found]}
    print_found(document, rows, empty="No token was given out: recrawl tokens add NAME", as_json=as_json)


@app.command("revoke")
def revoke(name: TokenName, as_json: Json = False) -> None:
    """Let nobody in by a token any more; a server that runs knows at once.

    Examples:

        recrawl tokens revoke search
    """
    tokens.remove_token(settings(), name)
    print_outcome({"revoked": name}, f"Nobody gets in by {name} any more", as_json=as_json)


LINKED = "what the pages link to"


def feed(
    what: Annotated[
        str | None, argument("DOMAIN|URL", "A domain, or what its pages' URLs begin with; else all.")
    ] = None,
    kind: Kinds = None,
    name: Annotated[str | None, option("NAME", "Whose it is, such as phone; else it is called as the feed is.")] = None,
    list_all: Annotated[bool, flag("--list", "List the addresses that were given out.")] = False,
    revoke: Annotated[str | None, option("NAME", "Let nobody in any more by the address of that name.")] = None,
    revoke_all: Annotated[bool, flag("--revoke-all", "Let nobody in any more by any of them.")] = False,
    as_json: Json = False,
) -> None:
    """Print the address of an Atom feed of changes, for a feed reader on this machine; `recrawl serve` answers it.

    The address lets whoever has it read that feed, and nothing else. Each has a name, and can be revoked by it; asked
    for again it is the same. Those that the pages link to go by the name `pages` together. For a file that can be put
    anywhere there is `recrawl changes --atom`.

    Examples:

        recrawl feed
        recrawl feed docs.example.com --kind new,gone
        recrawl feed https://docs.example.com/guide/
        recrawl feed docs.example.com --name phone
        recrawl feed --list
        recrawl feed --revoke phone
    """
    if list_all + (revoke is not None) + revoke_all > (what is None and kind is None and name is None):
        raise BadInput("--list, --revoke and --revoke-all go alone")
    home = settings().home.resolve()
    if list_all:
        found = feeds.addresses_of(home)
        rows = (
            {
                "name": each.name,
                "made": format_instant(each.made_at),
                "feed": each.wanted.label if each.wanted else LINKED,
            }
            for each in found
        )
        none = "No address of a feed was given out: recrawl feed"
        print_found({"feeds": list(map(_describe, found))}, rows, empty=none, as_json=as_json)
    elif revoke is not None:
        feeds.revoke_address(home, revoke)
        said = f"Nobody gets in by {revoke} any more; the other addresses go on"
        print_outcome({"revoked": revoke}, said, as_json=as_json)
    elif revoke_all:
        many = feeds.revoke_all_addresses(home)
        said = "1 address revoked" if many == 1 else f"{many:,} addresses revoked"
        print_outcome({"revoked": many}, said, as_json=as_json)
    else:
        _give(what, kinds=kind, name=name, as_json=as_json)


def _give(what: str | None, *, kinds: str | None, name: str | None, as_json: bool) -> None:
    if kinds is not None:
        change_kinds.parse_kinds(kinds)
    found = with_database(lambda db, _: feeds.give_feed(db, what, kinds=kinds or "", name=name, at=datetime.now(UTC)))
    print_outcome({"name": found.name, "feed": found.url, "is_served": found.is_served}, found.url, as_json=as_json)
    if not as_json and not found.is_served:
        remark("Nobody answers there now: recrawl serve, or recrawl up")


def _describe(address: "feeds.FeedAddress") -> dict[str, object]:
    about = pick(address.wanted, "domain", "prefix", "kinds") if address.wanted is not None else {}
    fields = {name: about.get(name) or None for name in ("domain", "prefix", "kinds")}
    return {"name": address.name, "made_at": address.made_at, **fields}
