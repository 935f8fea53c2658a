"""Messages to a receiver that a user has named: one POST, one deadline, and what came of it as a value."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Self

import aiohttp
from yarl import URL

from crawler.fetch import guard

IDLE_TIMEOUT = timedelta(seconds=2)  # a connection is kept for the next message of a burst, and no longer
MAX_READ_BYTES = (
    4096  # bytes of an answer, which nobody looks at: so much is read that the connection can be used again
)


@dataclass(frozen=True, slots=True)
class PostResult:
    """What came of a message. status: None where there was no answer.  detail: in a few words, without the address.

    retry_after, date: headers as they came.
    """

    status: int | None
    detail: str
    retry_after: str | None = None
    date: str | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class WebhookClient:
    """Sends messages to one receiver after the other; follows no redirect. To be used in `async with`.

    allow_private: private and loopback addresses may be asked; link-local ones (cloud metadata) never. Each address is
    checked when a connection is made to it, whatever its name said before.
    """

    user_agent: str
    allow_private: bool
    lookup: guard.Lookup = guard.look_up
    _session: aiohttp.ClientSession | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="lookup")
        connector = aiohttp.TCPConnector(
            resolver=guard.Resolver(self._threads, self.lookup),
            keepalive_timeout=IDLE_TIMEOUT.total_seconds(),
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
        """Send a body; never raises for anything that a receiver, a network or a name does.

        headers: beside those of the client.  deadline: for everything, the look-up of the name included.
        """
        assert self._session is not None, "use WebhookClient in `async with`"
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                response = await self._session.post(
                    URL(url, encoded=True), data=body, headers=dict(headers), allow_redirects=False
                )
                async with response:
                    await response.content.read(MAX_READ_BYTES)
        except TimeoutError:
            return PostResult(None, f"no answer within {deadline.total_seconds():g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return PostResult(None, _explain_error(error))
        return PostResult(
            response.status,
            f"status {response.status}",
            retry_after=response.headers.get("Retry-After"),
            date=response.headers.get("Date"),
        )


def _explain_error(error: Exception) -> str:
    """Why there is no answer. Messages of the client are not repeated: they name the address, which may be a secret."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, guard.ForbiddenAddressError):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "its name has no address"
        case aiohttp.ClientSSLError():
            return "its certificate is not believed"
        case aiohttp.InvalidURL() | ValueError():
            return "its address cannot be used"
        case aiohttp.ServerDisconnectedError():
            return "it hung up without an answer"
        case OSError():
            return f"it cannot be reached ({error.strerror or type(error).__name__})"
        case _:
            return f"it gives no answer that is HTTP ({type(error).__name__})"
