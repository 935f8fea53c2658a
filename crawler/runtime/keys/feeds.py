"""Addresses of Atom feeds: a feed reader knows no cookie, so the address itself lets it in, to that feed alone.

Each address that `recrawl feed` prints has a name and a key of its own: one can be revoked, and the others go on. Those
that the pages link to are made with one key together, which is listed and revoked by the name PAGES.
"""

import hmac
import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from crawler.errors import BadInput
from crawler.runtime.keys.entrance import KEY_BYTES, Signer
from crawler.runtime.machine import held
from crawler.runtime.private import private_folder, write_private

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


def address_named(home: Path, name: str, wanted: FeedWanted, *, at: datetime) -> FeedAddress:
    """The address of that name, made where there is none. Raises BadInput for a name of another feed, or for none."""
    if not name.isprintable() or not name.strip() or len(name) > MOST_NAME or name == PAGES:
        raise BadInput(f"the name of an address is a line of up to {MOST_NAME} characters, and not {PAGES}")
    with _changing(home) as known:
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
        shared = [FeedAddress(name=PAGES, made_at=made_at, wanted=None, key=_pages_key(home))]
    return tuple(sorted([*_named(home), *shared], key=lambda each: each.name))


def revoke_address(home: Path, name: str) -> None:
    """Let nobody in by it any more. Raises BadInput where there is none of that name."""
    with _changing(home) as known:
        left = [each for each in known if each.name != name]
        if name == PAGES and _pages_key_file(home).exists():
            _pages_key_file(home).unlink()
        elif len(left) == len(known):
            raise BadInput(f"there is no address of a feed by the name {name}: recrawl feed --list")
        known[:] = left


def revoke_all_addresses(home: Path) -> int:
    """Let nobody in by any address that was given out; gives how many there were, those of the pages as one."""
    many = len(addresses_of(home))
    with _changing(home) as known:
        known.clear()
        _pages_key_file(home).unlink(missing_ok=True)
    return many


def linked_path(home: Path, wanted: FeedWanted) -> str:
    """The path of a feed with what lets a feed reader in, for a link on a page that its user sees."""
    key = _pages_key(home)
    if not key:
        key = secrets.token_urlsafe(KEY_BYTES)
        write_private(private_folder(home, "run") / _pages_key_file(home).name, key)
    return _path(key, wanted)


def may_read(home: Path, wanted: FeedWanted, token: str) -> bool:
    """Whether a token was made for this feed, and not revoked since."""
    keys = [each.key for each in _named(home) if each.wanted == wanted]
    keys += filter(None, [_pages_key(home)])
    return any(hmac.compare_digest(_token(key, wanted).encode(), token.encode()) for key in keys)


def _path(key: str, wanted: FeedWanted) -> str:
    return f"{FEED}?{urlencode(wanted.query | {'token': _token(key, wanted)})}"


def _token(key: str, wanted: FeedWanted) -> str:
    return Signer(key).mac(PURPOSE, urlencode(wanted.query))


def _pages_key_file(home: Path) -> Path:
    return home / "run" / "feeds-key"


def _pages_key(home: Path) -> str:
    """The key of what the pages link to; empty where they have linked to none."""
    try:
        return _pages_key_file(home).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def _file(home: Path) -> Path:
    return home / "run" / "feed-addresses.json"


def _named(home: Path) -> list[FeedAddress]:
    try:
        rows: list[dict[str, Any]] = json.loads(_file(home).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [
        FeedAddress(
            name=row["name"],
            made_at=datetime.fromisoformat(row["made_at"]),
            wanted=FeedWanted(domain=row["domain"], prefix=row["prefix"], kinds=row["kinds"]),
            key=row["key"],
        )
        for row in rows
    ]


@contextmanager
def _changing(home: Path) -> Iterator[list[FeedAddress]]:
    """The named addresses, to be changed; kept when the block ends well. Others wait meanwhile."""
    folder = private_folder(home, "run")
    with held(folder / "feed-addresses.lock"):
        known = _named(home)
        yield known
        written = [
            {
                "name": each.name,
                "made_at": each.made_at.isoformat(),
                "domain": each.wanted.domain,
                "prefix": each.wanted.prefix,
                "kinds": each.wanted.kinds,
                "key": each.key,
            }
            for each in known
            if each.wanted is not None
        ]
        write_private(_file(home), json.dumps(written))
