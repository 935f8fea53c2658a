"""Sending of one message to a webhook, service or command; failures are returned as values."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self, assert_never

from crawler.notify.message_text import format_changes, format_headline, neutralize_mentions
from crawler.notify.payload import encode_body
from crawler.notify.target import NotifyTarget, TargetKind, add_next_step, parse_command
from crawler.notify.webhook_signing import build_webhook_headers
from crawler.store.outbox import Message

if TYPE_CHECKING:  # the web UI imports this module and needs no client
    from crawler.fetch import WebhookClient

MAX_CHANGES = 500  # in one message
WEBHOOK_DEADLINE = timedelta(seconds=20)
SERVICE_DEADLINE = timedelta(seconds=60)  # mail servers may delay their greeting
COMMAND_DEADLINE = timedelta(seconds=60)
TOO_LARGE = 413
MAX_ERROR_CHARS = 300  # the part of a program's stderr that is reported, from its end
# Statuses that reject one message only. With others, such as 401, 404 or 503, the receiver accepts no message at all.
REJECTION_STATUSES = frozenset({400, 409, 411, 413, 415, 422, 431})


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """The outcome of a message. why_not: why it was not delivered, or empty.

    is_message_rejected: whether only this message was rejected.  retry_after, date: the raw response headers.
    rejected_bytes: the size of the body if it was too large, or None.
    """

    why_not: str
    is_message_rejected: bool = False
    retry_after: str | None = None
    date: str | None = None
    rejected_bytes: int | None = None


@dataclass(slots=True)
class TargetSender:
    """A sender of messages to one target, one at a time, for use in `async with`.

    key: the secret that signs webhooks, or None.  origin: the origin of the web UI for links, or None.
    environment: the environment of programs.
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
        """Return whether messages have a size limit; apprise shortens or splits email and chat messages."""
        return self.target.kind is not TargetKind.SERVICE

    async def send(self, message: Message, *, at: datetime, max_bytes: int) -> DeliveryOutcome:
        """Send a message. at: the time in its signature.  max_bytes: the size limit of its JSON."""
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
        why_not = await run_program(command, stdin, deadline=deadline, environment=self.environment)
        return DeliveryOutcome(add_next_step(why_not))


async def run_program(command: list[str], stdin: bytes, *, deadline: timedelta, environment: Mapping[str, str]) -> str:
    """Run a program in a new process group, and kill the whole group when the program ends, or at the deadline.

    Return the error in a few words, or an empty string on success.
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
        return f"the program cannot be started: {error.strerror or type(error).__name__}"
    try:
        async with asyncio.timeout(deadline.total_seconds()):
            stderr_text, _ = await asyncio.gather(_read_stderr(child), _write_stdin(child, stdin))
            code = await child.wait()
    except TimeoutError:
        return f"the program did not finish within {deadline.total_seconds():g} s"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # including its child processes
        await child.wait()
    if code == 0:
        return ""
    how = f"the program failed with exit code {code}" if code > 0 else f"the program was killed by signal {-code}"
    return f"{how}: {stderr_text}" if stderr_text else how


async def _write_stdin(child: asyncio.subprocess.Process, stdin: bytes) -> None:
    """Write to the stdin of a program, which may close it without reading."""
    assert child.stdin is not None
    with suppress(ConnectionError):
        child.stdin.write(stdin)
        await child.stdin.drain()
    child.stdin.close()
    with suppress(ConnectionError):
        await child.stdin.wait_closed()


async def _read_stderr(child: asyncio.subprocess.Process) -> str:
    """Return the end of a program's stderr as one line."""
    assert child.stderr is not None
    tail = b""
    while part := await child.stderr.read(1 << 16):
        tail = (tail + part)[-MAX_ERROR_CHARS:]
    return " ".join(tail.decode("utf-8", errors="replace").split())
