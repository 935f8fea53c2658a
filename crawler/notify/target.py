"""Where messages go: a webhook, a service that apprise knows, or a command; as it is typed, and with its secrets.

What is typed, stored and shown holds no secret: a target that has one is named by the place where it stands whole,
env:NAME or block:NAME. No message here repeats what was typed, which may be a secret.
"""

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qsl, urlsplit

from crawler.core.http.credentials import SecretReference, SecretSource, parse_reference
from crawler.errors import BadInput

COMMAND_PREFIX = "command:"
WEB_SCHEMES = ("http", "https")
# Parameters of a query whose values let somebody in, as receivers call them; Azure signs addresses with `sig`.
SECRET_PARAMETERS = frozenset(
    (
        *("access_token", "api_key", "api-key", "apikey", "auth", "auth_token", "authorization"),
        *("client_secret", "code"),
        *("key", "pass", "passwd", "password", "pwd", "secret", "sig", "signature", "token", "x-api-key"),
    )
)
MAX_CHARS = 4000
LOCALHOST = "localhost"  # leads to this machine everywhere (RFC 6761, 6.3)
NEXT_STEP = "; if the receiver is yours, add the subscription with --allow-private"
REFERENCE_HINT = (
    "name the place where all of it stands: env:NAME for a variable, or block:NAME for a Prefect secret block"
)
TARGET_FORMS = "an https address, an apprise address such as mailto://..., command:PROGRAM, env:NAME or block:NAME"

# The secret that stands at a reference; None where there is none.
FindSecret = Callable[[SecretReference], Awaitable[str | None]]


class TargetKind(StrEnum):
    """The way to a target."""

    WEBHOOK = "webhook"
    SERVICE = "service"  # mail and chat, by apprise
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class NotifyTarget:
    """A target with its secrets. address: a URL, or a command line."""

    kind: TargetKind
    address: str = field(repr=False)


class TargetUnavailable(Exception):
    """A target cannot be used as things are; the message tells no secret."""


def check_target(text: str, *, allow_private: bool = False) -> str:
    """A target as it is stored. Raises BadInput for one that cannot be used, or that shows a secret.

    allow_private: as in WebhookClient. A name that leads to an address is judged when a message is sent.
    """
    text = text.strip()
    if not text or len(text) > MAX_CHARS or not text.isprintable():
        raise BadInput(f"a target is {TARGET_FORMS}")
    if _parse_reference(text) is not None:
        return text
    if text.startswith(COMMAND_PREFIX):
        parse_command(text.removeprefix(COMMAND_PREFIX))
        return text
    target = _parse_target(text)
    if target is None:
        raise BadInput(f"a target is {TARGET_FORMS}")
    if "@" in _get_authority(text):
        raise BadInput(f"a secret is not typed here: {REFERENCE_HINT}")
    if target.kind is TargetKind.SERVICE:
        from crawler.notify.services import check_service  # it takes a third of a second

        service_check = check_service(text)
        if service_check.why_not:
            raise BadInput(service_check.why_not)
        hosts, has_secret = service_check.hosts, service_check.has_secret
    else:
        hosts, has_secret = (urlsplit(text).hostname or "",), _is_secret_webhook(text)
    if has_secret:
        raise BadInput(f"this address has a secret in it, and a secret is not typed here: {REFERENCE_HINT}")
    for host in hosts:
        _check_host(host, allow_private=allow_private)
    return text


async def resolve_target(text: str, find_secret: FindSecret) -> NotifyTarget:
    """A stored target with its secrets. Raises TargetLacking."""
    reference = _parse_reference(text)
    address = text if reference is None else await resolve_secret(reference, find_secret)
    target = _parse_target(address.strip())
    if target is None or (target.kind is TargetKind.COMMAND and reference is not None):
        raise TargetUnavailable(f"what stands in {text} is no address of a webhook or of a service")
    return target


async def resolve_secret(reference: SecretReference, find_secret: FindSecret) -> str:
    """The secret at a reference. Raises TargetLacking where there is none."""
    try:
        secret = await find_secret(reference)
    except BadInput as error:  # a file that NAME_FILE names and that cannot be read
        raise TargetUnavailable(f"{reference} is not there: {error}") from error
    if not secret:
        name = reference.name
        is_variable = reference.source is SecretSource.ENV
        where = f"this process has neither {name} nor {name}_FILE" if is_variable else "there is no such block"
        raise TargetUnavailable(f"{reference} is not there: {where}")
    return secret


def get_signed_text(target: str) -> str:
    """What of a target its seal is made of: a command is run only where the user of that machine has set it."""
    return target if target.startswith(COMMAND_PREFIX) else ""


def _parse_reference(text: str) -> SecretReference | None:
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
        return NotifyTarget(TargetKind.WEBHOOK, text) if _get_authority(text) else None
    return NotifyTarget(TargetKind.SERVICE, text) if rest or scheme.lower() == "syslog" else None


def _get_authority(text: str) -> str:
    try:
        return urlsplit(text).netloc
    except ValueError as error:
        raise BadInput(f"a target is {TARGET_FORMS}") from error


def _is_secret_webhook(text: str) -> bool:
    """Whether the address of a hook is a secret itself: who has one of Slack or Discord may write there."""
    from crawler.notify.services import check_service  # as above

    split = urlsplit(text)
    parameter_names = {name.lower() for name, _ in parse_qsl(split.query, keep_blank_values=True)}
    # Without its parameters, too: one that a service refuses must not hide what the path is.
    variants = {text, split._replace(query="").geturl()}
    return bool(parameter_names & SECRET_PARAMETERS) or any(check_service(each).has_secret for each in variants)


def _check_host(host: str, *, allow_private: bool) -> None:
    """Raise BadInput for an IP address, or a name of this machine, that messages may not go to."""
    from crawler.fetch import NOT_AN_ADDRESS, find_refusal  # as above

    host = host.strip("[]").rstrip(".").lower()
    is_local = host == LOCALHOST or host.endswith(f".{LOCALHOST}")
    why = find_refusal("127.0.0.1" if is_local else host, allow_private=allow_private)
    if why is not None and why != NOT_AN_ADDRESS:
        raise BadInput(add_next_step(f"nothing is sent to {host}, since it is {why}"))


def add_next_step(why_not: str) -> str:
    """Why a message cannot be sent, with what to do about it where that is known."""
    from crawler.fetch import PRIVATE  # as above

    return f"{why_not}{NEXT_STEP}" if why_not.endswith(PRIVATE) else why_not


def parse_command(text: str) -> list[str]:
    """The words of a command, as a shell would split them; no shell runs it. Raises BadInput."""
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise BadInput(f"the command cannot be read: {error}") from error
    if not arguments:
        raise BadInput("command: is followed by a program, as in command:/usr/local/bin/tell")
    return arguments
