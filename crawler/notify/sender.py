"""One message to one target, by the way that leads there; what came of it is a value."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self, assert_never

from crawler.notify.message_text import format_changes, format_headline, neutralize_mentions
from crawler.notify.payload import build_webhook_headers, encode_body
from crawler.notify.target import NotifyTarget, TargetKind, add_next_step, parse_command
from crawler.store.outbox import Message

if TYPE_CHECKING:  # who serves a feed sends nothing, and needs no client
    from crawler.fetch import WebhookClient

MAX_CHANGES = 500  # of one message
WEBHOOK_DEADLINE = timedelta(seconds=20)
SERVICE_DEADLINE = timedelta(seconds=60)  # a mail server may take its time before it greets
COMMAND_DEADLINE = timedelta(seconds=60)
TOO_LARGE = 413
MAX_ERROR_CHARS = 300  # characters of what a program says last that are kept
READ_BYTES = 1 << 16
# What a receiver says of one message: others may be taken. Not so where it is busy, moved, or asks for another key.
REJECTION_STATUSES = frozenset({400, 409, 411, 413, 415, 422, 431})


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """What came of a message. why_not: why it was not taken; empty if it was.  retry_after, date: headers as they came.

    is_message_rejected: the receiver takes others.  rejected_bytes: how large the body was that is too large for it.
    """

    why_not: str
    is_message_rejected: bool = False
    retry_after: str | None = None
    date: str | None = None
    rejected_bytes: int | None = None


@dataclass(slots=True)
class TargetSender:
    """Sends messages to one target, one at a time. To be used in `async with`.

    key: what webhooks are signed with; None for no signature.  origin: of one's own pages, for links.
    environment: of a program that is run.
    """

    target: NotifyTarget
    user_agent: str
    allow_private: bool
    key: str | None
    origin: str | None
    environment: Mapping[str, str]
    _webhook: "WebhookClient | None" = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        if self.target.kind is TargetKind.WEBHOOK:
            from crawler.fetch import WebhookClient

            client = WebhookClient(user_agent=self.user_agent, allow_private=self.allow_private)
            self._webhook = await self._stack.enter_async_context(client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def is_bounded(self) -> bool:
        """Whether messages have a bound in bytes; mail and chat are shortened or split by apprise."""
        return self.target.kind is not TargetKind.SERVICE

    async def send(self, message: Message, *, at: datetime, max_bytes: int) -> DeliveryOutcome:
        """Send a message. at: the time that its receiver is told.  max_bytes: of a body, as in body_of."""
        subject = neutralize_mentions(format_headline(message.changes))
        plain_text = f"{subject}\n\n{neutralize_mentions(format_changes(message.changes))}"
        body = encode_body(message, text=plain_text, max_bytes=max_bytes)
        match self.target.kind:
            case TargetKind.WEBHOOK:
                return await self._post(str(message.token), body, at=at)
            case TargetKind.SERVICE:
                text = neutralize_mentions(format_changes(message.changes, origin=self.origin))
                message_fields = {"url": self.target.address, "subject": subject, "text": text}
                document = json.dumps({**message_fields, "allow_private": self.allow_private})
                command = [sys.executable, "-m", "crawler.notify.services"]
                return await self._run_program(command, document.encode(), deadline=SERVICE_DEADLINE)
            case TargetKind.COMMAND:
                return await self._run_program(parse_command(self.target.address), body, deadline=COMMAND_DEADLINE)
            case _:
                assert_never(self.target.kind)

    async def _post(self, token: str, body: bytes, *, at: datetime) -> DeliveryOutcome:
        assert self._webhook is not None, "use TargetSender in `async with`"
        headers = build_webhook_headers(token, body, key=self.key, at=at)
        response = await self._webhook.post(self.target.address, body, headers, deadline=WEBHOOK_DEADLINE)
        if response.status is not None and 200 <= response.status <= 299:
            return DeliveryOutcome("")
        return DeliveryOutcome(
            add_next_step(response.detail),
            is_message_rejected=response.status in REJECTION_STATUSES,
            retry_after=response.retry_after,
            date=response.date,
            rejected_bytes=len(body) if response.status == TOO_LARGE else None,
        )

    async def _run_program(self, command: list[str], stdin: bytes, *, deadline: timedelta) -> DeliveryOutcome:
        return DeliveryOutcome(
            add_next_step(await run_program(command, stdin, deadline=deadline, environment=self.environment))
        )


async def run_program(
    command: Sequence[str], stdin: bytes, *, deadline: timedelta, environment: Mapping[str, str]
) -> str:
    """Run a program in a session of its own, which is killed as a whole at its deadline.

    Return why it did not end well, in a few words; empty where it did.
    """
    try:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror or type(error).__name__}"
    try:
        async with asyncio.timeout(deadline.total_seconds()):
            stderr_text, _ = await asyncio.gather(_read_stderr(child), _write_stdin(child, stdin))
            code = await child.wait()
    except TimeoutError:
        return f"it did not end within {deadline.total_seconds():g} s"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # what it has left running, too
        await child.wait()
    if code == 0:
        return ""
    how = f"it ended with {code}" if code > 0 else f"it was ended by signal {-code}"
    return f"{how}: {stderr_text}" if stderr_text else how


async def _write_stdin(child: asyncio.subprocess.Process, stdin: bytes) -> None:
    """Write all to its stdin; a program need not read it."""
    assert child.stdin is not None
    with suppress(ConnectionError):
        child.stdin.write(stdin)
        await child.stdin.drain()
    child.stdin.close()
    with suppress(ConnectionError):
        await child.stdin.wait_closed()


async def _read_stderr(child: asyncio.subprocess.Process) -> str:
    """The end of what it says on stderr, in one line."""
    assert child.stderr is not None
    tail = b""
    while part := await child.stderr.read(READ_BYTES):
        tail = (tail + part)[-MAX_ERROR_CHARS:]
    return " ".join(tail.decode("utf-8", errors="replace").split())
