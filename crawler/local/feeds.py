"""Addresses of Atom feeds: a feed reader knows no cookie, so the address itself lets it in, to that feed alone.

They are made with a key of their own. Renewing it ends all addresses that were given away, and nothing else.
"""

import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from crawler.local.entrance import KEY_BYTES, Signer
from crawler.local.private import private_folder, write_private

FEED = "/feed.atom"
PURPOSE = "feed"


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


def feed_key_file(home: Path) -> Path:
    return home / "run" / "feeds-key"


def feed_key(home: Path) -> str:
    """The key of the feeds of `home`; empty where no address was ever made."""
    try:
        return feed_key_file(home).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def ensure_feed_key(home: Path) -> str:
    """The key of the feeds of `home`, made the first time; its owner alone can read it."""
    return feed_key(home) or renew_feed_key(home)


def renew_feed_key(home: Path) -> str:
    """A new key: no address that was made before lets anybody in any more."""
    made = secrets.token_urlsafe(KEY_BYTES)
    write_private(private_folder(home, "run") / feed_key_file(home).name, made)
    return made


def feed_path(key: str, wanted: FeedWanted) -> str:
    """The path of a feed with what lets a feed reader in."""
    return f"{FEED}?{urlencode(wanted.query | {'token': _token(key, wanted)})}"


def may_read(key: str, wanted: FeedWanted, token: str) -> bool:
    """Whether a token was made for this feed with the key of today."""
    return bool(key) and hmac.compare_digest(_token(key, wanted).encode(), token.encode())


def _token(key: str, wanted: FeedWanted) -> str:
    return Signer(key).mac(PURPOSE, urlencode(wanted.query))
