"""recrawl tokens and feed: access tokens of the HTTP API, and addresses of Atom feeds."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from crawler.cli.lazy import feeds, tokens
from crawler.cli.lazy import kinds as change_kinds
from crawler.cli.options import Json, Kinds, Tag, argument, flag, option, span_option
from crawler.cli.output import print_listing, print_outcome, remark
from crawler.cli.session import run_on_database, settings
from crawler.errors import BadInput
from crawler.format.values import format_instant
from crawler.json_lines import pick_fields

app = typer.Typer(no_args_is_help=True, help="Manage the access tokens of the HTTP API that `recrawl serve` offers.")

DEFAULT_SCOPE = "read"
TokenName = Annotated[str, argument("NAME", "The token's name, such as search or nightly-report.")]


@app.command("add")
def add(
    name: TokenName,
    scope: Annotated[
        str,
        option(
            "SCOPES",
            "What the token may do: read, crawl (recrawl and try pages), admin (change domains, rules and "
            "notifications), or several, separated by commas.",
        ),
    ] = DEFAULT_SCOPE,
    expires: Annotated[
        timedelta | None, span_option("How long the token is valid, such as 30d. Default: until revoked.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create an access token and print it.

    The token is shown only once, because recrawl stores only its hash. It gives access to the HTTP API and nothing
    else. No scope includes another one.

    Examples:

        recrawl tokens add search
        recrawl tokens add ci --scope read,crawl --expires 30d
        curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:4280/api/v1/domains
    """
    now = datetime.now(UTC)
    expires_at = now + expires if expires is not None else None
    scopes = tokens.parse_scopes(scope)
    token = run_on_database(lambda db, _: tokens.add_token(db, name, scopes=scopes, expires_at=expires_at, at=now))
    print_outcome({"name": name, "scopes": scopes, "token": token}, token, as_json=as_json)
    if not as_json:
        remark("This token is not shown again. Start the HTTP API with recrawl serve")


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the access tokens with their scopes.

    Examples:

        recrawl tokens list
    """
    issued = tokens.list_tokens(settings().home.resolve())
    rows = (
        {
            "name": each.name,
            "scopes": ", ".join(each.scopes),
            "created": format_instant(each.created_at),
            "expires": format_instant(each.expires_at),
        }
        for each in issued
    )
    document = {"tokens": [pick_fields(each, "name", "scopes", "created_at", "expires_at") for each in issued]}
    print_listing(document, rows, empty="There are no tokens: recrawl tokens add NAME", as_json=as_json)


@app.command("revoke")
def revoke(name: TokenName, as_json: Json = False) -> None:
    """Revoke an access token. A running server rejects it immediately.

    Examples:

        recrawl tokens revoke search
    """
    run_on_database(lambda db, _: tokens.remove_token(db, name))
    print_outcome({"revoked": name}, f"The token {name} is revoked", as_json=as_json)


def feed(
    what: Annotated[
        str | None, argument("DOMAIN|URL", "A domain, or a URL prefix of its pages. Default: all domains.")
    ] = None,
    kind: Kinds = None,
    tag: Tag = None,
    name: Annotated[
        str | None, option("NAME", "A name for the address, such as phone. Default: derived from the feed.")
    ] = None,
    list_all: Annotated[bool, flag("--list", "List all feed addresses.")] = False,
    revoke: Annotated[str | None, option("NAME", "Revoke the address of this name.")] = None,
    revoke_all: Annotated[bool, flag("--revoke-all", "Revoke all addresses.")] = False,
    as_json: Json = False,
) -> None:
    """Print the address of an Atom feed of changes, for a feed reader on this machine.

    `recrawl serve` serves the feed. Anyone who has the address can read that feed, and nothing else. Each address has a
    name, by which you can revoke it; the same feed and name give the same address again. The feeds that the web UI
    links to share the name `pages`. `recrawl changes --atom` writes a feed to a file instead.

    Examples:

        recrawl feed
        recrawl feed docs.example.com --kind added,gone
        recrawl feed https://docs.example.com/guide/
        recrawl feed --tag news
        recrawl feed docs.example.com --name phone
        recrawl feed --list
        recrawl feed --revoke phone
    """
    if list_all + (revoke is not None) + revoke_all > (what is None and kind is None and tag is None and name is None):
        raise BadInput("--list, --revoke and --revoke-all cannot be combined with other options")
    home = settings().home.resolve()
    if list_all:
        addresses = feeds.addresses.list_addresses(home)
        rows = [{"name": each.name, "created": format_instant(each.created_at)} for each in addresses]
        for row, each in zip(rows, addresses, strict=True):
            row["feed"] = each.selection.label if each.selection else "feeds linked in the web UI"
        empty = "There are no feed addresses: recrawl feed"
        print_listing({"feeds": list(map(_describe_address, addresses))}, rows, empty=empty, as_json=as_json)
    elif revoke is not None:
        run_on_database(lambda db, _: feeds.revoke_feed(db, revoke))
        message = f"The address {revoke} is revoked; the other addresses stay valid"
        print_outcome({"revoked": revoke}, message, as_json=as_json)
    elif revoke_all:
        count = run_on_database(lambda db, _: feeds.revoke_all_feeds(db))
        message = "1 address revoked" if count == 1 else f"{count:,} addresses revoked"
        print_outcome({"revoked": count}, message, as_json=as_json)
    else:
        _issue(what, kinds=kind, tag=tag, name=name, as_json=as_json)


def _issue(what: str | None, *, kinds: str | None, tag: str | None, name: str | None, as_json: bool) -> None:
    if kinds is not None:
        change_kinds.parse_kinds(kinds)
    issued = run_on_database(
        lambda db, _: feeds.issue_feed(db, what, kinds=kinds or "", name=name, tag=tag, at=datetime.now(UTC))
    )
    print_outcome({"name": issued.name, "feed": issued.url, "is_served": issued.is_served}, issued.url, as_json=as_json)
    if not as_json and not issued.is_served:
        remark("No server is running at this address: recrawl serve, or recrawl up")


def _describe_address(address: "feeds.FeedAddress") -> dict[str, object]:
    about = pick_fields(address.selection, "domain", "prefix", "kinds", "tag") if address.selection is not None else {}
    fields = {name: about.get(name) or None for name in ("domain", "prefix", "kinds", "tag")}
    return {"name": address.name, "created_at": address.created_at, **fields}
