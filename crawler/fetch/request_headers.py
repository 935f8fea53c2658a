"""The headers of a request: the conditions of a conditional request, the language, and credentials."""

from crawler.core.http.credentials import RequestAuth
from crawler.core.http.response import Validators
from crawler.core.http.urls import Url
from crawler.fetch import responses

CONDITIONS = ("If-None-Match", "If-Modified-Since")


def build_headers(validators: Validators, language: str) -> dict[str, str]:
    """Return the headers of a request that is conditional if there are validators.

    language: the value of Accept-Language; empty to send none.
    """
    values = zip(CONDITIONS, (validators.etag, validators.last_modified), strict=True)
    headers = {name: value for name, value in values if value and responses.can_be_sent(value)}
    return headers | {"Accept-Language": language} if language else headers


def add_auth(headers: dict[str, str], url: Url, auth: RequestAuth) -> dict[str, str]:
    """Return the headers with credentials; the user's own Cookie header is merged with the jar's cookies."""
    own = {name.lower() for name, _ in auth.headers}  # they replace headers of the browser, which are in lower case
    sent_headers = {name: value for name, value in headers.items() if name.lower() not in own} | dict(auth.headers)
    cookie = auth.cookies.get_header(url) if auth.cookies is not None else ""
    if cookie:
        cookie_name = next((name for name in sent_headers if name.lower() == "cookie"), "Cookie")
        sent_headers[cookie_name] = "; ".join(filter(None, (sent_headers.get(cookie_name), cookie)))
    return sent_headers
