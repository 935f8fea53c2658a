"""Addresses of Atom feeds. Feed readers have no cookies, so the address contains a token for that feed only.

Each address of `recrawl feed` has a name and a separate key, so it can be revoked alone. The links in the web UI share
one key, which is listed and revoked by the name WEB_UI_NAME.
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
WEB_UI_NAME = "pages"
MAX_ADDRESSES = 100
MAX_NAME_CHARS = 128


@dataclass(frozen=True, slots=True)
class FeedSelection:
    """The changes of a feed. domain, tag: empty for all.  prefix: of URLs.  kinds: as in `recrawl changes --kind`.

    user: of the web UI, to whose access the address is bound; empty for none.
    """

    domain: str = ""
    prefix: str = ""
    kinds: str = ""
    tag: str = ""
    user: str = ""

    @property
    def query(self) -> dict[str, str]:
        values = {"domain": self.domain, "prefix": self.prefix, "kind": self.kinds, "tag": self.tag} | {
            "user": self.user
        }
        return {name: value for name, value in values.items() if value}

    @property
    def label(self) -> str:
        """The default name of the feed."""
        where = self.prefix or self.domain or (f"tag {self.tag}" if self.tag else "all")
        return f"{where} {self.kinds}" if self.kinds else where


@dataclass(frozen=True, slots=True)
class FeedAddress:
    """An issued address. selection: its feed; None for the shared address of all links of the web UI."""

    name: str
    created_at: datetime
    selection: FeedSelection | None
    key: str = field(repr=False)

    @property
    def path(self) -> str:
        """The path with its token."""
        return _build_path(self.key, self.selection or FeedSelection())


ADDRESSES = NamedRecords("feed-addresses", TypeAdapter(list[FeedAddress]))


def ensure_address(home: Path, name: str, selection: FeedSelection, *, at: datetime) -> FeedAddress:
    """Return the address of that name, and create it if needed. Raises BadInput for a bad name or too many of them."""
    if not name.isprintable() or not name.strip() or len(name) > MAX_NAME_CHARS or name == WEB_UI_NAME:
        raise BadInput(f"the name of a feed must be one line of at most {MAX_NAME_CHARS} characters, not {WEB_UI_NAME}")
    with ADDRESSES.edit(home) as addresses:
        for each in addresses:
            if each.name == name and each.selection != selection:
                raise BadInput(f"{name} is the name of another feed: use another name, or --revoke it first")
            if each.name == name:
                return each
        if len(addresses) >= MAX_ADDRESSES:
            raise BadInput(f"there are already {MAX_ADDRESSES} feed addresses, which is the maximum: revoke some")
        address = FeedAddress(name=name, created_at=at, selection=selection, key=secrets.token_urlsafe(KEY_BYTES))
        addresses.append(address)
    return address


def list_addresses(home: Path) -> Sequence[FeedAddress]:
    """Return all valid addresses in the order of their names; the links of the web UI are one of them."""
    key_file = _get_shared_key_file(home)
    shared = []
    if key_file.exists():
        created_at = datetime.fromtimestamp(key_file.stat().st_mtime, UTC)
        shared = [FeedAddress(name=WEB_UI_NAME, created_at=created_at, selection=None, key=read_secret(key_file))]
    return tuple(sorted([*ADDRESSES.read(home), *shared], key=lambda each: each.name))


def revoke_address(home: Path, name: str) -> None:
    """Revoke an address. Raises BadInput if there is none of that name."""
    if name == WEB_UI_NAME and _get_shared_key_file(home).exists():
        _get_shared_key_file(home).unlink()
    elif not ADDRESSES.remove(home, name):
        raise BadInput(f"there is no feed address named {name}: run recrawl feed --list to see all")


def revoke_all_addresses(home: Path) -> int:
    """Revoke all addresses and return their number; the links of the web UI count as one."""
    count = len(list_addresses(home))
    with ADDRESSES.edit(home) as addresses:
        addresses.clear()
        _get_shared_key_file(home).unlink(missing_ok=True)
    return count


def build_linked_path(home: Path, selection: FeedSelection) -> str:
    """Return the path of a feed with its token, for a link in the web UI."""
    return _build_path(ensure_secret(_get_shared_key_file(home), lambda: secrets.token_urlsafe(KEY_BYTES)), selection)


def may_read(home: Path, selection: FeedSelection, token: str) -> bool:
    """Return whether a token is valid for this feed."""
    keys = [each.key for each in ADDRESSES.read(home) if each.selection == selection]
    keys += filter(None, [read_secret(_get_shared_key_file(home))])
    return any(hmac.compare_digest(_build_token(key, selection).encode(), token.encode()) for key in keys)


def _build_path(key: str, selection: FeedSelection) -> str:
    return f"{FEED_PATH}?{urlencode(selection.query | {'token': _build_token(key, selection)})}"


def _build_token(key: str, selection: FeedSelection) -> str:
    return Signer(key).compute_mac("feed", urlencode(selection.query))


def _get_shared_key_file(home: Path) -> Path:
    return home / "run" / "feeds-key"
