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
from crawler.runtime.keys.home_keys import KEY_BYTES, Signer
from crawler.runtime.keys.records import NamedRecords
from crawler.runtime.machine import ensure_secret, read_secret

FEED_PATH = "/feed.atom"
PURPOSE = "feed"
WEB_UI_NAME = "pages"
EVERYTHING = "all"  # the name of the feed of all domains, unless its user gives it another
MAX_ADDRESSES = 100
MAX_NAME_CHARS = 128


@dataclass(frozen=True, slots=True)
class FeedSelection:
    """A feed. domain: of one; empty for all.  prefix: of its URLs.  kinds: as `recrawl changes --kind` has them."""

    domain: str = ""
    prefix: str = ""
    kinds: str = ""

    @property
    def query(self) -> dict[str, str]:
        values = {"domain": self.domain, "prefix": self.prefix, "kind": self.kinds}
        return {name: value for name, value in values.items() if value}

    @property
    def label(self) -> str:
        """What it is of, in a few words."""
        where = self.prefix or self.domain or EVERYTHING
        return f"{where} {self.kinds}" if self.kinds else where


@dataclass(frozen=True, slots=True)
class FeedAddress:
    """An address that was given out. wanted: None for all that the pages link to."""

    name: str
    created_at: datetime
    wanted: FeedSelection | None
    key: str = field(repr=False)

    @property
    def path(self) -> str:
        """With what lets a feed reader in."""
        return _build_path(self.key, self.wanted or FeedSelection())


ADDRESSES = NamedRecords("feed-addresses", TypeAdapter(list[FeedAddress]))


def ensure_address(home: Path, name: str, selection: FeedSelection, *, at: datetime) -> FeedAddress:
    """The address of that name, made where there is none. Raises BadInput for a name of another feed, or for none."""
    if not name.isprintable() or not name.strip() or len(name) > MAX_NAME_CHARS or name == WEB_UI_NAME:
        raise BadInput(f"the name of an address is a line of up to {MAX_NAME_CHARS} characters, and not {WEB_UI_NAME}")
    with ADDRESSES.edit(home) as addresses:
        for each in addresses:
            if each.name == name and each.wanted != selection:
                raise BadInput(f"{name} is the address of another feed: take another name, or --revoke it before")
            if each.name == name:
                return each
        if len(addresses) >= MAX_ADDRESSES:
            raise BadInput(f"there are {MAX_ADDRESSES} addresses of feeds: revoke some")
        address = FeedAddress(name=name, created_at=at, wanted=selection, key=secrets.token_urlsafe(KEY_BYTES))
        addresses.append(address)
    return address


def list_addresses(home: Path) -> Sequence[FeedAddress]:
    """All addresses that let somebody in, in the order of their names, those of the pages' links as one."""
    key_file = _get_shared_key_file(home)
    shared = []
    if key_file.exists():
        created_at = datetime.fromtimestamp(key_file.stat().st_mtime, UTC)
        shared = [FeedAddress(name=WEB_UI_NAME, created_at=created_at, wanted=None, key=read_secret(key_file))]
    return tuple(sorted([*ADDRESSES.read(home), *shared], key=lambda each: each.name))


def revoke_address(home: Path, name: str) -> None:
    """Let nobody in by it any more. Raises BadInput where there is none of that name."""
    if name == WEB_UI_NAME and _get_shared_key_file(home).exists():
        _get_shared_key_file(home).unlink()
    elif not ADDRESSES.remove(home, name):
        raise BadInput(f"there is no address of a feed by the name {name}: recrawl feed --list")


def revoke_all_addresses(home: Path) -> int:
    """Let nobody in by any address that was given out; gives how many there were, those of the pages as one."""
    count = len(list_addresses(home))
    with ADDRESSES.edit(home) as addresses:
        addresses.clear()
        _get_shared_key_file(home).unlink(missing_ok=True)
    return count


def build_linked_path(home: Path, selection: FeedSelection) -> str:
    """The path of a feed with what lets a feed reader in, for a link on a page that its user sees."""
    return _build_path(ensure_secret(_get_shared_key_file(home), lambda: secrets.token_urlsafe(KEY_BYTES)), selection)


def may_read(home: Path, selection: FeedSelection, token: str) -> bool:
    """Whether a token was made for this feed, and not revoked since."""
    keys = [each.key for each in ADDRESSES.read(home) if each.wanted == selection]
    keys += filter(None, [read_secret(_get_shared_key_file(home))])
    return any(hmac.compare_digest(_build_token(key, selection).encode(), token.encode()) for key in keys)


def _build_path(key: str, selection: FeedSelection) -> str:
    return f"{FEED_PATH}?{urlencode(selection.query | {'token': _build_token(key, selection)})}"


def _build_token(key: str, selection: FeedSelection) -> str:
    return Signer(key).compute_mac(PURPOSE, urlencode(selection.query))


def _get_shared_key_file(home: Path) -> Path:
    return home / "run" / "feeds-key"
