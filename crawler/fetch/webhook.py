"""Send messages to a user's webhook receivers: one POST within one deadline, with the result as a value."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from msgspec import Struct

from crawler.core.http.response import FailureReason
from crawler.fetch import guard
from crawler.fetch.connection import Exchange, FetchError, HttpRequest
from crawler.fetch.pool import ConnectionPool, split_url

MAX_CONNECTIONS = 100
MAX_READ_BYTES = 4096  # of a response's body, which is read only to reuse the connection
MAX_RECEIVED_BYTES = 1 << 20  # with the framing of its chunks


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
    _pool: ConnectionPool | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._pool = ConnectionPool(
            allow_private=self.allow_private,
            limit=MAX_CONNECTIONS,
            lookup=self.lookup,
            keep_seconds=2,  # only for the next message of a burst
        )
        await self._pool.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._pool is not None
        await self._pool.__aexit__(*error)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, deadline: timedelta) -> PostResult:
        """Send a body. Never raise because of a receiver, a network or a name.

        headers: in addition to the client's.  deadline: for everything, including the resolution of the host.
        """
        assert self._pool is not None, "use WebhookClient in `async with`"
        exchange = Exchange(asyncio.get_running_loop().time(), max_bytes=MAX_RECEIVED_BYTES)
        try:
            server, authority, target = split_url(url)
            sent = [*headers.items(), ("User-Agent", self.user_agent), ("Accept", "*/*")]
            request = HttpRequest("POST", target, authority, sent, body, first_bytes=MAX_READ_BYTES)
            async with asyncio.timeout(deadline.total_seconds()):
                head, _ = await self._pool.request(server, request, exchange)
        except TimeoutError:
            return PostResult(None, f"no response within {deadline.total_seconds():g} s")
        except FetchError as error:
            return PostResult(None, _explain_error(error))
        except OSError as error:
            return PostResult(None, f"it cannot be reached ({error.strerror or type(error).__name__})")
        except ValueError:
            return PostResult(None, "its URL is invalid")
        return PostResult(
            head.status, f"status {head.status}", retry_after=head.get("retry-after"), date=head.get("date")
        )


def _explain_error(error: FetchError) -> str:
    """Explain a missing response without text of the receiver."""
    match error.reason:
        case FailureReason.ADDRESS:
            return error.detail
        case FailureReason.DNS:
            return "its host name has no address"
        case FailureReason.TLS:
            return "its certificate is not trusted"
        case FailureReason.REFUSED:
            return f"it cannot be reached ({error.detail})"
        case FailureReason.RESET:
            return "it closed the connection without a response"
        case _:
            return "it sent no valid HTTP response"
