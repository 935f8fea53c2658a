"""The cookies of one domain, kept in memory by the rules of RFC 6265; aiohttp's jar has the rules."""

from collections.abc import Sequence

from aiohttp import CookieJar
from yarl import URL

from crawler.core.http.urls import Url

MOST_COOKIES = 50  # RFC 6265, 6.1: at least so many of a domain; more is nobody's session
MOST_BYTES = 4096  # of one, likewise


class DomainCookies:
    """A jar whose cookies are sent where they were set, and nowhere else. They are secrets: nothing here shows them.

    More than MOST_COOKIES are not kept, nor one of more than MOST_BYTES. To be used within a running loop.
    """

    def __init__(self) -> None:
        # Addresses are hosts as good as names here: one's own servers have no other.
        self._jar = CookieJar(unsafe=True, quote_cookie=False)

    def header_for(self, url: Url) -> str:
        """The value of the header Cookie for a request; empty for none."""
        sent = self._jar.filter_cookies(URL(url, encoded=True))
        return "; ".join(f"{name}={morsel.coded_value}" for name, morsel in sent.items())

    def take(self, url: Url, said: Sequence[str]) -> None:
        """Keep what an answer has set. said: the values of its headers Set-Cookie."""
        kept = {morsel.key for morsel in self._jar}
        for one in said:
            name = one.partition("=")[0].strip()
            if len(one) <= MOST_BYTES and one.isprintable() and (name in kept or len(kept) < MOST_COOKIES):
                self._jar.update_cookies_from_headers([one], URL(url, encoded=True))
                kept.add(name)
