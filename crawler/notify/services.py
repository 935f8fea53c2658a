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

MIN_SECRET_CHARS = 4  # characters: shorter parts of an address are words like "to"
MAX_ERROR_CHARS = 300
# Options of addresses that name a file, which the service opens and sends, or parts of it: anybody who may add a
# subscription could read what this process may read. `template` is an id with some services and a file with others.
FILE_OPTIONS = ("keyfile", "pgpkey", "pgpprv", "pgppub", "subfile")
FILE_OR_ID = "template"


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """What apprise makes of an address. why_not: it cannot be used; empty if it can.  has_secret: it shows one.

    hosts: the servers that the address names; with some services a part of a token stands in their place.
    """

    why_not: str
    has_secret: bool = False
    hosts: tuple[str, ...] = ()


def check_service(url: str) -> ServiceCheck:
    """Whether an address can be used, and has a secret in it: then apprise writes it otherwise where it shows it."""
    logging.getLogger("apprise").disabled = True  # it would tell what it cannot read
    service = _parse_service(url)
    if isinstance(service, str):
        return ServiceCheck(service)
    host_values = (getattr(service, name, None) for name in ("host", "smtp_host"))
    return ServiceCheck(
        "",
        has_secret=_format_address(service, privacy=True) != _format_address(service, privacy=False),
        hosts=tuple(dict.fromkeys(host for host in host_values if isinstance(host, str) and host)),
    )


def _parse_service(url: str) -> apprise.NotifyBase | str:
    """Return the service of an address, or why there is none. A service that would open a local file is none."""
    names = [name.lower() for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
    file_option = next((name for name in names if name in FILE_OPTIONS), None)
    # By this services open files, whatever the option is called.
    AttachmentManager().remove("file")  # type: ignore[no-untyped-call]
    service = None if file_option is not None else apprise.Apprise.instantiate(url)
    if isinstance(service, apprise.NotifyBase):
        return service
    if file_option is None and FILE_OR_ID in names:
        file_option = FILE_OR_ID
    if file_option is not None:
        return f"the option {file_option}= would open a file of this machine, which no subscription may: leave it out"
    return "apprise knows no such address (github.com/caronc/apprise/wiki lists all)"


def _format_address(service: Any, *, privacy: bool) -> str:
    return str(service.url(privacy=privacy))


def send(url: str, *, subject: str, text: str, allow_private: bool) -> str:
    """Send a message; gives why it was not taken, or nothing. From then on this process reaches allowed addresses only.

    allow_private: private and loopback addresses may be reached, too, as in guard_sockets. Redirects are not followed.
    """
    collector = _LogCollector()
    log = logging.getLogger("apprise")
    log.handlers, log.propagate, log.disabled = [collector], False, False
    log.setLevel(logging.WARNING)
    redirects = _refuse_redirects()
    refusals = guard_sockets(allow_private=allow_private)
    os.environ["NETRC"] = os.devnull  # credentials of other programs are for nobody here
    if not allow_private:
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"  # a proxy would reach what is not checked here
    service = _parse_service(url)
    if isinstance(service, str):
        return service
    if "format=" not in url:  # as it is: a text that is made into HTML and back loses its lines
        service.notify_format = apprise.NotifyFormat.TEXT
    if service.overflow_mode == apprise.OverflowMode.UPSTREAM:  # what is too long for a service is sent in parts
        service.overflow_mode = apprise.OverflowMode.SPLIT
    if service.notify(body=text, title=subject, body_format=apprise.NotifyFormat.TEXT) and not redirects:
        return ""
    for why in (*refusals, *redirects):
        return why
    return redact_secrets(" ".join(collector.messages), url)[:MAX_ERROR_CHARS] or "the service did not take it"


def _refuse_redirects() -> list[str]:
    """Follow no redirect from now on, whatever an option of an address says. Return a list that grows with each one."""
    redirects: list[str] = []

    def get_redirect_target(_: object, response: requests.Response) -> None:
        if response.is_redirect:
            redirects.append(
                f"it redirects (status {response.status_code}), and redirects are not followed: "
                "use the address that it leads to"
            )

    setattr(requests.Session, "get_redirect_target", get_redirect_target)  # noqa: B010 - it replaces a method
    return redirects


class _LogCollector(logging.Handler):
    """Keeps what apprise says went wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(" ".join(record.getMessage().split()))


def redact_secrets(text: str, url: str) -> str:
    """A text without any part of an address but its scheme, however that is spelt."""
    split = urlsplit(url)
    parts = {url, *re.split(r"[/?&=:@#,]+", url.partition("://")[2])}
    parts |= {split.netloc, split.username or "", split.password or ""}
    spellings = {each for part in parts for each in (part, unquote(part), quote(unquote(part), safe=""))}
    for part in sorted((each for each in spellings if len(each) >= MIN_SECRET_CHARS), key=len, reverse=True):
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
