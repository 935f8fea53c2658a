"""recrawl feed: the addresses of Atom feeds."""

from datetime import UTC, datetime

from crawler.app.feeds import FeedAddress, addresses_of, give_feed, revoke_address, revoke_all_addresses
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import with_database
from crawler.format.kinds import parse_kinds
from crawler.format.values import format_instant
from crawler.settings import settings

LINKED = "what the pages link to"


def feed(what: str | None, *, kinds: str | None, name: str | None, as_json: bool) -> int:
    if kinds is not None:
        parse_kinds(kinds)
    found = with_database(
        lambda db, _: give_feed(db, settings(), what, kinds=kinds or "", name=name, at=datetime.now(UTC))
    )
    if as_json:
        print_json({"name": found.name, "feed": found.url, "is_served": found.is_served})
        return DONE
    say(found.url)
    if not found.is_served:
        remark("Nobody answers there now: recrawl serve, or recrawl up")
    return DONE


def list_all(*, as_json: bool) -> int:
    found = addresses_of(settings().home.resolve())
    if as_json:
        print_json({"feeds": [_row(each) for each in found]})
    elif found:
        show(
            ["name", "made", "feed"],
            [
                (each.name, format_instant(each.made_at), each.wanted.label if each.wanted is not None else LINKED)
                for each in found
            ],
        )
    else:
        say("No address of a feed was given out: recrawl feed")
    return DONE


def revoke(name: str, *, as_json: bool) -> int:
    revoke_address(settings().home.resolve(), name)
    if as_json:
        print_json({"revoked": name})
    else:
        say(f"Nobody gets in by {name} any more; the other addresses go on")
    return DONE


def revoke_all(*, as_json: bool) -> int:
    many = revoke_all_addresses(settings().home.resolve())
    if as_json:
        print_json({"revoked": many})
    else:
        say("1 address revoked" if many == 1 else f"{many:,} addresses revoked")
    return DONE


def _row(address: FeedAddress) -> dict[str, object]:
    wanted = address.wanted
    return {
        "name": address.name,
        "made_at": address.made_at,
        "domain": (wanted.domain or None) if wanted is not None else None,
        "prefix": (wanted.prefix or None) if wanted is not None else None,
        "kinds": (wanted.kinds or None) if wanted is not None else None,
    }
