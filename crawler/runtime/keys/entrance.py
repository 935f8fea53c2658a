"""The key of a home's pages, the addresses that let their user in, of feeds, and the seal of commands to be run."""

import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from crawler.runtime.private import private_folder, write_private

KEY_BYTES = 32
ENTRANCE = "/enter"
ENTERING = "enter"  # what a code is good for


def key_file(home: Path) -> Path:
    return home / "run" / "pages-key"


def ensure_key(home: Path) -> str:
    """The key of the pages of `home`, made the first time; its owner alone can read it."""
    try:
        return key_file(home).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        made = secrets.token_urlsafe(KEY_BYTES)
        write_private(private_folder(home, "run") / key_file(home).name, made)
        return made


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


@dataclass(frozen=True, slots=True)
class CommandSeal:
    """Makes the proof that the user of a home has set a command, which nobody can make who merely writes to a database.

    A subscription's command is run only where its seal is that of the home.
    """

    signer: Signer

    def __call__(self, text: str) -> str:
        return self.signer.mac("command", text)


def command_seal(home: Path) -> CommandSeal:
    """The seal of `home`, with the key that is made the first time."""
    return CommandSeal(Signer(ensure_key(home)))


def entrance(address: str, key: str, *, at: datetime) -> str:
    """The address that lets its user in, once and for half a day."""
    return f"{address}{ENTRANCE}?code={Signer(key).signed(ENTERING, at)}"
