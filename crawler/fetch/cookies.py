"""The cookies of one domain, in memory. Imported only for domains that keep them: its parts of the library are slow."""

from collections.abc import Sequence
from email.message import Message
from http.client import HTTPResponse
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import cast
from urllib.request import Request

from crawler.core.http.urls import Authority, Url, get_authority, get_host, get_public_suffix

MAX_COOKIES = 50  # per domain; RFC 6265, 6.1, demands at least this
MAX_COOKIE_BYTES = 4096  # of one cookie with its attributes; from the same section


class DomainCookies:
    """A cookie jar that sends cookies only where they were set. They are secrets and never shown.

    It keeps at most MAX_COOKIES, and none above MAX_COOKIE_BYTES. A cookie without a Domain stays on its host.
    """

    def __init__(self) -> None:
        policy = DefaultCookiePolicy(rfc2965=False, strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain)
        self._jar = CookieJar(policy)

    def get_header(self, url: Url) -> str:
        """Return the value of the Cookie header for a request; empty if there is none."""
        request = Request(url)  # noqa: S310  only a URL for the jar; nothing is opened
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie") or ""

    def store_cookies(self, url: Url, set_cookie_headers: Sequence[str]) -> None:
        """Store the cookies of a response. set_cookie_headers: the values of its Set-Cookie headers."""
        host = get_host(get_authority(url))
        for header in set_cookie_headers:
            set_cookie = _select_attributes(header, host)
            if len(header) > MAX_COOKIE_BYTES or not header.isprintable() or set_cookie is None:
                continue
            known = {(each.domain, each.path, each.name) for each in self._jar}
            self._jar.extract_cookies(cast("HTTPResponse", _CookieResponse(set_cookie)), Request(url))  # noqa: S310
            for each in list(self._jar):
                key = each.domain, each.path, each.name
                if len(known) >= MAX_COOKIES and key not in known:
                    self._jar.clear(*key)


def _select_attributes(set_cookie: str, host: str) -> str | None:
    """Return a Set-Cookie header without what the jar would refuse but browsers accept; None to refuse the cookie.

    A Domain that is the host itself, such as an intranet's "wiki", is left out; a public suffix is refused.
    """
    kept: list[str] = []
    for part in set_cookie.split(";"):
        name, _, value = part.strip().partition("=")
        domain = value.strip().lstrip(".").lower() if name.strip().lower() == "domain" and kept else ""
        if domain and domain != host and get_public_suffix(Authority(domain)) == domain:
            return None
        if not (kept and name.strip().lower() == "port") and (not domain or domain != host or "." in host):
            kept.append(part)
    return ";".join(kept)


class _CookieResponse:
    """What a jar reads of a response."""

    def __init__(self, set_cookie: str) -> None:
        self._message = Message()
        self._message["Set-Cookie"] = set_cookie

    def info(self) -> Message:
        return self._message
