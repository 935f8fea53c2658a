"""Mail and chat, by apprise: whether it knows an address, and one message to it, from a process of its own.

apprise blocks, takes as long as a server lets it, and logs what it likes, so a process that is ended at its deadline
runs it: `python -m crawler.notify.services`, with a JSON document on stdin. It says why a message was not taken on
stderr, without any part of the address.
"""

import json
import logging
import re
import sys
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import apprise

LEAST_SECRET = 4  # characters: shorter parts of an address are words like "to"
MOST_SAID = 300


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """What apprise makes of an address. why_not: it cannot be used; empty if it can.  has_secret: it shows one."""

    why_not: str
    has_secret: bool


def standing_of(url: str) -> ServiceStanding:
    """Whether an address can be used, and has a secret in it: then apprise writes it otherwise where it shows it."""
    logging.getLogger("apprise").disabled = True  # it would tell what it cannot read
    found = apprise.Apprise.instantiate(url)
    if not isinstance(found, apprise.NotifyBase):
        return ServiceStanding("apprise knows no such address (github.com/caronc/apprise/wiki lists all)", False)  # noqa: FBT003
    return ServiceStanding("", has_secret=_written(found, privacy=True) != _written(found, privacy=False))


def _written(service: Any, *, privacy: bool) -> str:
    return str(service.url(privacy=privacy))


def send(url: str, *, subject: str, text: str) -> str:
    """Send a message; gives why it was not taken, or nothing."""
    heard = _Hearing()
    log = logging.getLogger("apprise")
    log.handlers, log.propagate, log.disabled = [heard], False, False
    log.setLevel(logging.WARNING)
    found = apprise.Apprise.instantiate(url)
    if not isinstance(found, apprise.NotifyBase):
        return "apprise knows no such address"
    if "format=" not in url:  # as it is: a text that is made into HTML and back loses its lines
        found.notify_format = apprise.NotifyFormat.TEXT
    if found.overflow_mode == apprise.OverflowMode.UPSTREAM:  # what is too long for a service is sent in parts
        found.overflow_mode = apprise.OverflowMode.SPLIT
    if found.notify(body=text, title=subject, body_format=apprise.NotifyFormat.TEXT):
        return ""
    return without_secrets(" ".join(heard.said), url)[:MOST_SAID] or "the service did not take it"


class _Hearing(logging.Handler):
    """Keeps what apprise says went wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(" ".join(record.getMessage().split()))


def without_secrets(text: str, url: str) -> str:
    """A text without any part of an address but its scheme, however that is spelt."""
    split = urlsplit(url)
    parts = {url, *re.split(r"[/?&=:@#,]+", url.partition("://")[2])}
    parts |= {split.netloc, split.username or "", split.password or ""}
    spelt = {each for part in parts for each in (part, unquote(part), quote(unquote(part), safe=""))}
    for part in sorted((each for each in spelt if len(each) >= LEAST_SECRET), key=len, reverse=True):
        text = text.replace(part, "***")
    return text


def main() -> int:
    """Send what stands on stdin."""
    given = json.load(sys.stdin)
    why_not = send(given["url"], subject=given["subject"], text=given["text"])
    sys.stderr.write(why_not)
    return 1 if why_not else 0


if __name__ == "__main__":
    sys.exit(main())
