"""recrawl feed: the addresses of Atom feeds."""

from datetime import UTC, datetime

from crawler.app.pages import page_named
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.format.kinds import parse_kinds
from crawler.format.values import format_instant
from crawler.runtime.keys.feeds import FeedAddress, FeedWanted, address_named, addresses_of, revoke_address
from crawler.runtime.keys.feeds import revoke_all_addresses as revoke_every
from crawler.runtime.own_address import own_origins
from crawler.runtime.pages import USUAL_PORT, pages_origin
from crawler.settings import settings
from crawler.store.database import Database

LINKED = "what the pages link to"


def feed(what: str | None, *, kinds: str | None, name: str | None, as_json: bool) -> int:
    if kinds is not None:
        parse_kinds(kinds)

    async def work(db: Database, _: Interrupts) -> FeedWanted:
        if what is None:
            return FeedWanted(kinds=kinds or "")
        domain, url = await page_named(db, what)
        return FeedWanted(domain=domain.authority, prefix=url if url != domain.root else "", kinds=kinds or "")

    wanted, home = with_database(work), settings().home.resolve()
    origin = pages_origin(home)
    found = address_named(home, name if name is not None else wanted.label, wanted, at=datetime.now(UTC))
    address = (origin or own_origins(USUAL_PORT)[0]) + found.path
    if as_json:
        print_json({"name": found.name, "feed": address, "is_served": origin is not None})
        return DONE
    say(address)
    if origin is None:
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
    many = revoke_every(settings().home.resolve())
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
