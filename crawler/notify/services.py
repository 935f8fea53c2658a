"""Mail and chat, by apprise: whether it knows an address, and one message to it, from a process of its own.

apprise blocks, takes as long as a server lets it, and logs what it likes, so a process that is ended at its deadline
runs it: `python -m crawler.notify.services`, with a JSON document on stdin. It says why a message was not taken on
stderr, without any part of the address but an IP address that it may not connect to.
"""

import json
import logging
import os
import re
import sys
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import apprise
import requests
from apprise.manager_attachment import AttachmentManager

from crawler.fetch import guard_sockets

LEAST_SECRET = 4  # characters: shorter parts of an address are words like "to"
MOST_SAID = 300
# Options of addresses that name a file, which the service opens and sends, or parts of it: anybody who may add a
# subscription could read what this process may read. `template` is an id with some services and a file with others.
FILE_OPTIONS = ("keyfile", "pgpkey", "pgpprv", "pgppub", "subfile")
FILE_OR_ID = "template"


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """What apprise makes of an address. why_not: it cannot be used; empty if it can.  has_secret: it shows one.

    hosts: the servers that the address names; with some services a part of a token stands in their place.
    """

    why_not: str
    has_secret: bool = False
    hosts: tuple[str, ...] = ()


def standing_of(url: str) -> ServiceStanding:
    """Whether an address can be used, and has a secret in it: then apprise writes it otherwise where it shows it."""
    logging.getLogger("apprise").disabled = True  # it would tell what it cannot read
    found = _service(url)
    if isinstance(found, str):
        return ServiceStanding(found)
    named = (getattr(found, name, None) for name in ("host", "smtp_host"))
    return ServiceStanding(
        "",
        has_secret=_written(found, privacy=True) != _written(found, privacy=False),
        hosts=tuple(dict.fromkeys(host for host in named if isinstance(host, str) and host)),
    )


def _service(url: str) -> apprise.NotifyBase | str:
    """Return the service of an address, or why there is none. A service that would open a local file is none."""
    names = [name.lower() for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
    opened = next((name for name in names if name in FILE_OPTIONS), None)
    # By this services open files, whatever the option is called.
    AttachmentManager().remove("file")  # type: ignore[no-untyped-call]
    found = None if opened is not None else apprise.Apprise.instantiate(url)
    if isinstance(found, apprise.NotifyBase):
        return found
    if opened is None and FILE_OR_ID in names:
        opened = FILE_OR_ID
    if opened is not None:
        return f"the option {opened}= would open a file of this machine, which no subscription may: leave it out"
    return "apprise knows no such address (github.com/caronc/apprise/wiki lists all)"


def _written(service: Any, *, privacy: bool) -> str:
    return str(service.url(privacy=privacy))


def send(url: str, *, subject: str, text: str, allow_private: bool) -> str:
    """Send a message; gives why it was not taken, or nothing. From then on this process reaches allowed addresses only.

    allow_private: private and loopback addresses may be reached, too, as in guard_sockets. Redirects are not followed.
    """
    heard = _Hearing()
    log = logging.getLogger("apprise")
    log.handlers, log.propagate, log.disabled = [heard], False, False
    log.setLevel(logging.WARNING)
    redirects = _refuse_redirects()
    refused = guard_sockets(allow_private=allow_private)
    os.environ["NETRC"] = os.devnull  # credentials of other programs are for nobody here
    if not allow_private:
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"  # a proxy would reach what is not checked here
    found = _service(url)
    if isinstance(found, str):
        return found
    if "format=" not in url:  # as it is: a text that is made into HTML and back loses its lines
        found.notify_format = apprise.NotifyFormat.TEXT
    if found.overflow_mode == apprise.OverflowMode.UPSTREAM:  # what is too long for a service is sent in parts
        found.overflow_mode = apprise.OverflowMode.SPLIT
    if found.notify(body=text, title=subject, body_format=apprise.NotifyFormat.TEXT) and not redirects:
        return ""
    for why in (*refused, *redirects):
        return why
    return without_secrets(" ".join(heard.said), url)[:MOST_SAID] or "the service did not take it"


def _refuse_redirects() -> list[str]:
    """Follow no redirect from now on, whatever an option of an address says. Return a list that grows with each one."""
    seen: list[str] = []

    def get_redirect_target(_: object, response: requests.Response) -> None:
        if response.is_redirect:
            seen.append(
                f"it redirects (status {response.status_code}), and redirects are not followed: "
                "use the address that it leads to"
            )

    setattr(requests.Session, "get_redirect_target", get_redirect_target)  # noqa: B010 - it replaces a method
    return seen


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
    why_not = send(**given)
    sys.stderr.write(why_not)
    return 1 if why_not else 0


if __name__ == "__main__":
    sys.exit(main())
