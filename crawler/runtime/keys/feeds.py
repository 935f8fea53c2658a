"""Addresses of Atom feeds: a feed reader knows no cookie, so the address itself lets it in, to that feed alone.

Each address that `recrawl feed` prints has a name and a key of its own: one can be revoked, and the others go on. Those
that the pages link to are made with one key together, which is listed and revoked by the name PAGES.
"""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from pydantic import TypeAdapter

from crawler.errors import BadInput
from crawler.runtime.keys.own_keys import KEY_BYTES, Signer
from crawler.runtime.keys.records import NamedRecords
from crawler.runtime.machine import ensure_secret, read_secret

FEED = "/feed.atom"
PURPOSE = "feed"
PAGES = "pages"
EVERYTHING = "all"  # the name of the feed of all domains, unless its user gives it another
MOST_ADDRESSES = 100
MOST_NAME = 128


@dataclass(frozen=True, slots=True)
class FeedWanted:
    """A feed. domain: of one; empty for all.  prefix: of its URLs.  kinds: as `recrawl changes --kind` has them."""

    domain: str = ""
    prefix: str = ""
    kinds: str = ""

    @property
    def query(self) -> dict[str, str]:
        given = {"domain": self.domain, "prefix": self.prefix, "kind": self.kinds}
        return {name: value for name, value in given.items() if value}

    @property
    def label(self) -> str:
        """What it is of, in a few words."""
        where = self.prefix or self.domain or EVERYTHING
        return f"{where} {self.kinds}" if self.kinds else where


@dataclass(frozen=True, slots=True)
class FeedAddress:
    """An address that was given out. wanted: None for all that the pages link to."""

    name: str
    made_at: datetime
    wanted: FeedWanted | None
    key: str = field(repr=False)

    @property
    def path(self) -> str:
        """With what lets a feed reader in."""
        return _path(self.key, self.wanted or FeedWanted())


ADDRESSES = NamedRecords("feed-addresses", TypeAdapter(list[FeedAddress]))


def address_named(home: Path, name: str, wanted: FeedWanted, *, at: datetime) -> FeedAddress:
    """The address of that name, made where there is none. Raises BadInput for a name of another feed, or for none."""
    if not name.isprintable() or not name.strip() or len(name) > MOST_NAME or name == PAGES:
        raise BadInput(f"the name of an address is a line of up to {MOST_NAME} characters, and not {PAGES}")
    with ADDRESSES.changing(home) as known:
        for each in known:
            if each.name == name and each.wanted != wanted:
                raise BadInput(f"{name} is the address of another feed: take another name, or --revoke it before")
            if each.name == name:
                return each
        if len(known) >= MOST_ADDRESSES:
            raise BadInput(f"there are {MOST_ADDRESSES} addresses of feeds: revoke some")
        made = FeedAddress(name=name, made_at=at, wanted=wanted, key=secrets.token_urlsafe(KEY_BYTES))
        known.append(made)
    return made


def addresses_of(home: Path) -> Sequence[FeedAddress]:
    """All addresses that let somebody in, in the order of their names, those of the pages' links as one."""
    pages = _pages_key_file(home)
    shared = []
    if pages.exists():
        made_at = datetime.fromtimestamp(pages.stat().st_mtime, UTC)
        shared = [FeedAddress(name=PAGES, made_at=made_at, wanted=None, key=read_secret(pages))]
    return tuple(sorted([*ADDRESSES.read(home), *shared], key=lambda each: each.name))


def revoke_address(home: Path, name: str) -> None:
    """Let nobody in by it any more. Raises BadInput where there is none of that name."""
    if name == PAGES and _pages_key_file(home).exists():
        _pages_key_file(home).unlink()
    elif not ADDRESSES.remove(home, name):
        raise BadInput(f"there is no address of a feed by the name {name}: recrawl feed --list")


def revoke_all_addresses(home: Path) -> int:
    """Let nobody in by any address that was given out; gives how many there were, those of the pages as one."""
    many = len(addresses_of(home))
    with ADDRESSES.changing(home) as known:
        known.clear()
        _pages_key_file(home).unlink(missing_ok=True)
    return many


def linked_path(home: Path, wanted: FeedWanted) -> str:
    """The path of a feed with what lets a feed reader in, for a link on a page that its user sees."""
    return _path(ensure_secret(_pages_key_file(home), lambda: secrets.token_urlsafe(KEY_BYTES)), wanted)


def may_read(home: Path, wanted: FeedWanted, token: str) -> bool:
    """Whether a token was made for this feed, and not revoked since."""
    keys = [each.key for each in ADDRESSES.read(home) if each.wanted == wanted]
    keys += filter(None, [read_secret(_pages_key_file(home))])
    return any(hmac.compare_digest(_token(key, wanted).encode(), token.encode()) for key in keys)


def _path(key: str, wanted: FeedWanted) -> str:
    return f"{FEED}?{urlencode(wanted.query | {'token': _token(key, wanted)})}"


def _token(key: str, wanted: FeedWanted) -> str:
    return Signer(key).mac(PURPOSE, urlencode(wanted.query))


def _pages_key_file(home: Path) -> Path:
    return home / "run" / "feeds-key"
