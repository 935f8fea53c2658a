"""Email and chat messages by apprise: validation of addresses, and a child process that sends one message.

apprise blocks, has no time limit and logs freely. So `python -m crawler.notify.services` runs it, with a JSON document
on stdin, and is killed at its deadline. With --check, it only checks addresses. It prints the error on stderr without
any part of the address, except for an IP address that it may not connect to.
"""

import json
import logging
import os
import re
import sys
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import apprise
import requests
from apprise.manager_attachment import AttachmentManager

from crawler.fetch import guard_sockets
from crawler.notify.target import CHECK, ServiceCheck

MAX_ERROR_CHARS = 300
# Options that name a file, which the service opens and may send: a user who can add a subscription could read all files
# of this process. `template` is an id for some services and a file for others.
FILE_OPTIONS = ("keyfile", "pgpkey", "pgpprv", "pgppub", "subfile")


def check_service(url: str) -> ServiceCheck:
    """Check whether an address can be used, and whether it has a secret: a part that apprise masks on request."""
    logging.getLogger("apprise").disabled = True  # it would log the address
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
    """Return the service of an address, or the error. An address that would open a local file is an error."""
    names = [name.lower() for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
    file_option = next((name for name in names if name in FILE_OPTIONS), None)
    # Services open files with this manager, whatever the option is called.
    AttachmentManager().remove("file")  # type: ignore[no-untyped-call]
    service = None if file_option is not None else apprise.Apprise.instantiate(url)
    if isinstance(service, apprise.NotifyBase):
        return service
    if file_option is None and "template" in names:
        file_option = "template"
    if file_option is not None:
        return f"the option {file_option}= would open a local file, which is not allowed: remove it from the address"
    return "apprise does not support this address (see github.com/caronc/apprise/wiki for all services)"


def _format_address(service: Any, *, privacy: bool) -> str:
    return str(service.url(privacy=privacy))


def send(url: str, *, subject: str, text: str, allow_private: bool) -> str:
    """Send a message. Return the error, or an empty string. This limits the sockets of the whole process.

    allow_private: whether private and loopback addresses are allowed.  Redirects are not followed.
    """
    log, collector = logging.getLogger("apprise"), _LogCollector()
    log.handlers, log.propagate, log.disabled = [collector], False, False
    log.setLevel(logging.WARNING)
    redirects = _refuse_redirects()
    refusals = guard_sockets(allow_private=allow_private)
    os.environ["NETRC"] = os.devnull  # do not use the credentials of other programs
    if not allow_private:
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"  # a proxy could reach addresses that are not checked here
    service = _parse_service(url)
    if isinstance(service, str):
        return service
    if "format=" not in url:  # plain text: converting it to HTML and back loses the line breaks
        service.notify_format = apprise.NotifyFormat.TEXT
    if service.overflow_mode == apprise.OverflowMode.UPSTREAM:  # split messages that are too long for the service
        service.overflow_mode = apprise.OverflowMode.SPLIT
    if service.notify(body=text, title=subject, body_format=apprise.NotifyFormat.TEXT) and not redirects:
        return ""
    for why in (*refusals, *redirects):
        return why
    return redact_secrets(" ".join(collector.messages), url)[:MAX_ERROR_CHARS] or "the service rejected the message"


def _refuse_redirects() -> list[str]:
    """Disable redirects in this process, whatever options an address has. Return a list that collects the attempts."""
    redirects: list[str] = []

    def get_redirect_target(_: object, response: requests.Response) -> None:
        if response.is_redirect:
            problem = f"the address redirects (status {response.status_code}), and redirects are not followed"
            redirects.append(f"{problem}: use the address that it redirects to")

    setattr(requests.Session, "get_redirect_target", get_redirect_target)  # noqa: B010 - it replaces a method
    return redirects


class _LogCollector(logging.Handler):
    """Collects the warnings of apprise."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(" ".join(record.getMessage().split()))


def redact_secrets(text: str, url: str) -> str:
    """Replace the parts of an address except its scheme and short parts in a text, also percent-encoded ones."""
    split = urlsplit(url)
    parts = {url, *re.split(r"[/?&=:@#,]+", url.partition("://")[2])}
    parts |= {split.netloc, split.username or "", split.password or ""}
    spellings = {each for part in parts for each in (part, unquote(part), quote(unquote(part), safe=""))}
    # Parts of up to three characters are words like "to".
    for part in sorted((each for each in spellings if len(each) >= 4), key=len, reverse=True):
        text = text.replace(part, "***")
    return text


def main() -> int:
    """Send the message that stdin describes; or check the addresses that it lists, and print the results."""
    if CHECK in sys.argv:
        json.dump([asdict(check_service(each)) for each in json.load(sys.stdin)], sys.stdout)
        return 0
    why_not = send(**json.load(sys.stdin))
    sys.stderr.write(why_not)
    return 1 if why_not else 0


if __name__ == "__main__":
    sys.exit(main())
