"""Send messages to a user's webhook receivers: one POST within one deadline, with the result as a value."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Self

import aiohttp
from msgspec import Struct
from yarl import URL

from crawler.fetch import guard

MAX_READ_BYTES = 4096  # of a response, which is read only to reuse the connection


class PostResult(Struct, frozen=True):
    """The result of sending a message.

    status: None if there was no response.  detail: a short description without the URL, which may be a secret.
    retry_after, date: headers of the response.
    """

    status: int | None
    detail: str
    retry_after: str | None = None
    date: str | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class WebhookClient:
    """A client that sends messages to receivers and follows no redirects. Use it in `async with`.

    allow_private: allow private and loopback addresses; link-local ones (cloud metadata) are never allowed. Each
    address is checked when it is connected to.
    """

    user_agent: str
    allow_private: bool
    lookup: guard.Lookup = guard.look_up
    _session: aiohttp.ClientSession | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="lookup")
        connector = aiohttp.TCPConnector(
            resolver=guard.Resolver(self._threads, self.lookup),
            keepalive_timeout=2,  # seconds: only for the next message of a burst
            socket_factory=partial(guard.open_socket, allow_private=self.allow_private),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self.user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),  # the caller's deadline is the only one
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, deadline: timedelta) -> PostResult:
        """Send a body. Never raise because of a receiver, a network or a name.

        headers: in addition to the client's.  deadline: for everything, including the resolution of the host.
        """
        assert self._session is not None, "use WebhookClient in `async with`"
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                target = URL(url, encoded=True)
                async with self._session.post(target, data=body, headers=headers, allow_redirects=False) as response:
                    await response.content.read(MAX_READ_BYTES)
        except TimeoutError:
            return PostResult(None, f"no response within {deadline.total_seconds():g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return PostResult(None, _explain_error(error))
        retry_after, date = (response.headers.get(name) for name in ("Retry-After", "Date"))
        return PostResult(response.status, f"status {response.status}", retry_after=retry_after, date=date)


def _explain_error(error: Exception) -> str:
    """Explain a missing response without the client's messages, which contain the URL: it may be a secret."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, guard.ForbiddenAddressError):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "its host name has no address"
        case aiohttp.ClientSSLError():
            return "its certificate is not trusted"
        case aiohttp.InvalidURL() | ValueError():
            return "its URL is invalid"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without a response"
        case OSError():
            return f"it cannot be reached ({error.strerror or type(error).__name__})"
        case _:
            return f"it sent no valid HTTP response ({type(error).__name__})"
