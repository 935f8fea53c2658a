"""Targets of notifications: a webhook, an apprise service or a command.

Stored and displayed targets contain no secrets: a target with a secret is a reference, env:NAME or block:NAME, to the
place that holds the whole address. Error messages never repeat the typed target, because it may contain a secret.
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qsl, urlsplit

from crawler.core.http.credentials import SecretReference, SecretSource, parse_reference
from crawler.engine.machine_load import build_child_environment
from crawler.errors import BadInput, ReceiverNotAllowed

COMMAND_PREFIX = "command:"
CHECK = "--check"  # an argument of the program crawler.notify.services
WEB_SCHEMES = ("http", "https")
# Query parameters that hold credentials, by the names that receivers use; `sig` is the signature of Azure.
SECRET_PARAMETERS = {
    *("access_token", "api_key", "api-key", "apikey", "auth", "auth_token", "authorization", "client_secret", "code"),
    *("key", "pass", "passwd", "password", "pwd", "secret", "sig", "signature", "token", "x-api-key"),
}
MAX_CHARS = 4000
NEXT_STEP = "; if the receiver is yours, add the subscription with --allow-private"
ADDRESS_HINT = "store the whole address in a variable and use env:NAME, or in a Prefect secret block and use block:NAME"
TARGET_FORMS = "an https address, an apprise address such as mailto://..., command:PROGRAM, env:NAME or block:NAME"

# Returns the secret of a reference, or None.
FindSecret = Callable[[SecretReference], Awaitable[str | None]]


class TargetKind(StrEnum):
    """The kind of a target."""

    WEBHOOK = "webhook"
    SERVICE = "service"  # email and chat, by apprise
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class NotifyTarget:
    """A target with its secrets. address: a URL or a command line."""

    kind: TargetKind
    address: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """The check of an apprise address. why_not: why it cannot be used, or empty.  has_secret: whether it has a secret.

    hosts: the servers in the address; for some services, a part of a token instead.
    """

    why_not: str
    has_secret: bool = False
    hosts: tuple[str, ...] = ()


class TargetUnavailable(Exception):
    """The target or its secret is not available; the message contains no secret."""


def check_target(text: str, *, allow_private: bool = False) -> str:
    """Return a target in its stored form. Raises BadInput if it is invalid, not allowed or contains a secret.

    allow_private: whether private and loopback addresses are allowed. The addresses of a host name are only checked
    when a message is sent.
    """
    text = text.strip()
    if not text or len(text) > MAX_CHARS or not text.isprintable():
        raise BadInput(f"a target is {TARGET_FORMS}")
    if find_reference(text) is not None:
        return text
    if text.startswith(COMMAND_PREFIX):
        _check_program(parse_command(text.removeprefix(COMMAND_PREFIX))[0])
        return text
    target = _parse_target(text)
    if target is None:
        raise BadInput(f"a target is {TARGET_FORMS}")
    if "@" in _get_authority(text):
        raise BadInput(f"this address contains a secret, which must not be typed: {ADDRESS_HINT}")
    if target.kind is TargetKind.SERVICE:
        (service_check,) = _check_services([text])
        if service_check.why_not:
            raise BadInput(service_check.why_not)
        hosts, has_secret = service_check.hosts, service_check.has_secret
    else:
        hosts, has_secret = (urlsplit(text).hostname or "",), _is_secret_webhook(text)
    if has_secret:
        raise BadInput(f"this address contains a secret, which must not be typed: {ADDRESS_HINT}")
    for host in hosts:
        _check_host(host, allow_private=allow_private)
    return text


async def resolve_target(text: str, find_secret: FindSecret) -> NotifyTarget:
    """Return a stored target with its secrets. Raises TargetUnavailable."""
    reference = find_reference(text)
    address = text if reference is None else await resolve_secret(reference, find_secret)
    target = _parse_target(address.strip())
    if target is None or (target.kind is TargetKind.COMMAND and reference is not None):
        raise TargetUnavailable(f"the value of {text} is not a webhook or apprise address")
    return target


async def resolve_secret(reference: SecretReference, find_secret: FindSecret) -> str:
    """Return the secret of a reference. Raises TargetUnavailable if it is missing."""
    try:
        secret = await find_secret(reference)
    except BadInput as error:  # the file of NAME_FILE cannot be read
        raise TargetUnavailable(f"{reference} is not available: {error}") from error
    if not secret:
        name = reference.name
        is_variable = reference.source is SecretSource.ENV
        where = f"this process has neither {name} nor {name}_FILE" if is_variable else "the block does not exist"
        raise TargetUnavailable(f"{reference} is not available: {where}")
    return secret


def get_signed_text(target: str) -> str:
    """Return the text that a subscription's signature covers: its command; empty for targets of other kinds."""
    return target if target.startswith(COMMAND_PREFIX) else ""


def find_reference(text: str) -> SecretReference | None:
    """Return the reference that a target is; None for another target. Raises BadInput for an invalid one."""
    source, colon, _ = text.partition(":")
    if not colon or source not in set(SecretSource) or text.startswith((f"{source}://",)):
        return None
    try:
        return parse_reference(text)
    except ValueError as error:
        raise BadInput(f"a target is {TARGET_FORMS}") from error


def _parse_target(text: str) -> NotifyTarget | None:
    if text.startswith(COMMAND_PREFIX):
        return NotifyTarget(TargetKind.COMMAND, text.removeprefix(COMMAND_PREFIX))
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme.isascii() or not scheme.replace("+", "").isalnum():
        return None
    if scheme.lower() in WEB_SCHEMES:
        is_complete = bool(_get_authority(text)) and _has_valid_port(text)
        return NotifyTarget(TargetKind.WEBHOOK, f"{scheme.lower()}://{rest}") if is_complete else None
    return NotifyTarget(TargetKind.SERVICE, text) if rest or scheme.lower() == "syslog" else None


def _has_valid_port(text: str) -> bool:
    try:
        return urlsplit(text).port != 0
    except ValueError:
        return False


def _get_authority(text: str) -> str:
    try:
        return urlsplit(text).netloc
    except ValueError as error:
        raise BadInput(f"a target is {TARGET_FORMS}") from error


def _is_secret_webhook(text: str) -> bool:
    """Return whether a webhook address is itself a secret, like those of Slack and Discord."""
    split = urlsplit(text)
    parameter_names = {name.lower() for name, _ in parse_qsl(split.query, keep_blank_values=True)}
    # Also without its parameters: an invalid parameter must not hide that the path is a secret.
    variants = [text, split._replace(query="").geturl()]
    return bool(parameter_names & SECRET_PARAMETERS) or any(each.has_secret for each in _check_services(variants))


def _check_services(addresses: Sequence[str]) -> list[ServiceCheck]:
    """Check addresses with apprise in a child process, because a server would keep its 30 MB for good."""
    command = [sys.executable, "-m", "crawler.notify.services", CHECK]
    text, environment = json.dumps(addresses), build_child_environment({})
    done = subprocess.run(command, input=text, env=environment, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return [ServiceCheck(**{**each, "hosts": tuple(each["hosts"])}) for each in json.loads(done.stdout)]


def _check_host(host: str, *, allow_private: bool) -> None:
    """Raise BadInput for an IP address or a name of this machine that is not allowed."""
    from crawler.fetch import NOT_AN_ADDRESS, find_refusal  # slow to import

    host = host.strip("[]").rstrip(".").lower()
    is_local = host == "localhost" or host.endswith(".localhost")  # always this machine (RFC 6761, 6.3)
    why = find_refusal("127.0.0.1" if is_local else host, allow_private=allow_private)
    if why is not None and why != NOT_AN_ADDRESS:
        raise ReceiverNotAllowed(add_next_step(f"messages to {host} are not allowed, since it is {why}"))


def add_next_step(why_not: str) -> str:
    """Return an error message with the next step, if there is one."""
    from crawler.fetch import PRIVATE  # slow to import

    return f"{why_not}{NEXT_STEP}" if why_not.endswith(PRIVATE) else why_not


def _check_program(program: str) -> None:
    if "/" in program and not program.startswith("/"):
        raise BadInput("command: needs the absolute path of the program, because the worker runs in another folder")


def parse_command(text: str) -> list[str]:
    """Split a command into its arguments like a shell; no shell runs it. Raises BadInput."""
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise BadInput(f"the command cannot be parsed: {error}") from error
    if not arguments:
        raise BadInput("command: needs a program, for example command:/usr/local/bin/notify")
    return arguments
