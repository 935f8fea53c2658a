"""The key of a home's pages, the addresses that let their user in, of feeds, and the seal of commands to be run."""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from crawler.runtime.machine import ensure_secret

KEY_BYTES = 32
ENTRANCE = "/enter"
ENTERING = "enter"  # what a code is good for


def key_file(home: Path) -> Path:
    return home / "run" / "pages-key"


def ensure_key(home: Path) -> str:
    """The key of the pages of `home`, made the first time; its owner alone can read it."""
    return ensure_secret(key_file(home), lambda: secrets.token_urlsafe(KEY_BYTES))


@dataclass(frozen=True, slots=True)
class Signer:
    """Texts that nobody can make or change who does not know the key."""

    key: str = field(repr=False)

    def mac(self, purpose: str, text: str) -> str:
        """The proof that the text was made for this purpose by somebody who knows the key."""
        return hmac.digest(self.key.encode(), f"{purpose}\n{text}".encode(), "sha256").hex()

    def signed(self, purpose: str, at: datetime) -> str:
        """A new word that is good for a purpose, with the instant at which it was made."""
        word = f"{int(at.timestamp() * 1000)}.{secrets.token_urlsafe(16)}"
        return f"{word}.{self.mac(purpose, word)}"

    def made_at(self, purpose: str, given: str) -> datetime | None:
        """When a word was made for that purpose; None for one that was not made here."""
        word, _, mac = given.rpartition(".")
        if not word or not hmac.compare_digest(self.mac(purpose, word).encode(), mac.encode()):
            return None
        return datetime.fromtimestamp(int(word.partition(".")[0]) / 1000).astimezone()


def command_seal(home: Path) -> Callable[[str], str]:
    """Return what makes the proof that the user of `home` has set a command.

    A subscription's command is run only where its seal is that of the home: who merely writes to a database can make
    none.
    """
    return partial(Signer(ensure_key(home)).mac, "command")


def entrance(address: str, key: str, *, at: datetime) -> str:
    """The address that lets its user in, once and for half a day."""
    return f"{address}{ENTRANCE}?code={Signer(key).signed(ENTERING, at)}"
