"""One request of a browser's and what it is answered, as values."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from crawler.core.http import Url

Headers = tuple[tuple[str, str], ...]

HOP_BY_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)  # RFC 9110, 7.6.1


@dataclass(frozen=True, slots=True)
class BrowserRequest:
    """A request that a page makes. url: absolute, as the page spelt it.  headers: names in lower case."""

    method: str
    url: Url
    headers: Headers = field(repr=False)

    def header(self, name: str) -> str:
        """The value of the first header of that name, in lower case; empty where there is none."""
        return next((value for found, value in self.headers if found == name), "")

    @property
    def destination(self) -> str:
        """What the page wants it for (Fetch Standard, 2.2.5): "document", "script", "image"; empty where not said."""
        return self.header("sec-fetch-dest")


@dataclass(frozen=True, slots=True)
class BrowserAnswer:
    """What a request is answered. body: without Content-Encoding."""

    status: int
    headers: Headers = ()
    body: bytes = field(default=b"", repr=False)


# Answers the requests of one page. It may take its time, and never raises for what the web does.
AnswerRequest = Callable[[BrowserRequest], Awaitable[BrowserAnswer]]
