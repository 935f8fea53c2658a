"""The cookies of one domain, in memory. Imported only for domains that keep them: its parts of the library are slow."""

from collections.abc import Sequence
from email.message import Message
from http.client import HTTPResponse
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import cast
from urllib.request import Request

from crawler.core.http.urls import Url

MAX_COOKIES = 50  # per domain; RFC 6265, 6.1, demands at least this
MAX_COOKIE_BYTES = 4096  # of one cookie with its attributes; from the same section


class DomainCookies:
    """A cookie jar that sends cookies only where they were set. They are secrets and never shown.

    It keeps at most MAX_COOKIES names, and no cookie above MAX_COOKIE_BYTES.
    """

    def __init__(self) -> None:
        self._jar = CookieJar(DefaultCookiePolicy(rfc2965=False))

    def get_header(self, url: Url) -> str:
        """Return the value of the Cookie header for a request; empty if there is none."""
        request = Request(url)  # noqa: S310  only a URL for the jar; nothing is opened
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie") or ""

    def store_cookies(self, url: Url, set_cookie_headers: Sequence[str]) -> None:
        """Store the cookies of a response. set_cookie_headers: the values of its Set-Cookie headers."""
        names = {cookie.name for cookie in self._jar}
        for header in set_cookie_headers:
            name = header.partition("=")[0].strip()
            if len(header) <= MAX_COOKIE_BYTES and header.isprintable() and (name in names or len(names) < MAX_COOKIES):
                self._jar.extract_cookies(cast("HTTPResponse", _CookieResponse(header)), Request(url))  # noqa: S310
                names.add(name)


class _CookieResponse:
    """What a jar reads of a response."""

    def __init__(self, set_cookie: str) -> None:
        self._message = Message()
        self._message["Set-Cookie"] = set_cookie

    def info(self) -> Message:
        return self._message
