"""recrawl feed: the addresses of Atom feeds."""

from crawler.cli.change_kinds import kinds_named
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say
from crawler.cli.session import Interrupts, with_database
from crawler.cli.which_page import page_named
from crawler.local.feeds import FeedWanted, ensure_feed_key, feed_path, renew_feed_key
from crawler.local.own_address import own_origins
from crawler.local.pages import USUAL_PORT, pages_origin
from crawler.settings import settings
from crawler.store.database import Database


def feed(what: str | None, *, kinds: str | None, as_json: bool) -> int:
    if kinds is not None:
        kinds_named(kinds)

    async def work(db: Database, _: Interrupts) -> FeedWanted:
        if what is None:
            return FeedWanted(kinds=kinds or "")
        domain, url = await page_named(db, what)
        return FeedWanted(domain=domain.authority, prefix=url if url != domain.root else "", kinds=kinds or "")

    wanted, home = with_database(work), settings().home.resolve()
    origin = pages_origin(home)
    address = (origin or own_origins(USUAL_PORT)[0]) + feed_path(ensure_feed_key(home), wanted)
    if as_json:
        print_json({"feed": address, "is_served": origin is not None})
        return DONE
    say(address)
    if origin is None:
        remark("Nobody answers there now: recrawl serve, or recrawl up")
    return DONE


def revoke(*, as_json: bool) -> int:
    renew_feed_key(settings().home.resolve())
    if as_json:
        print_json({"revoked": True})
    else:
        say("No address of a feed that was made before lets anybody in any more: recrawl feed makes others")
    return DONE
