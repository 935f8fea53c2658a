"""Credentials of a domain: headers, authentication, a login, a proxy. Secrets are given by reference.

A reference names where a secret is stored (env:NAME, block:NAME). Only references are entered, stored and displayed.
Error messages do not repeat values, because they may be secrets that the user entered instead of references.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from crawler.core.http.urls import Url

MAX_FIELDS = 16  # of a login
MAX_SECRET_CHARS = 8192  # session tokens are rarely half as long
REFERENCE_HELP = "use env:NAME for an environment variable or block:NAME for a Prefect secret block"

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}"  # RFC 9110, 5.6.2  # noqa: S105  not a secret
# Never the secrets of recrawl itself: a user who may only change settings could otherwise have them sent to a server.
_REFERENCE = re.compile(r"(env|block):(?!(?i:RECRAWL_|PREFECT_))([A-Za-z_][A-Za-z0-9_-]{0,127})", re.ASCII)
_HEADER = re.compile(rf"({_TOKEN})\s*:\s*(\S+)", re.ASCII)
_FIELD = re.compile(r"([^\s=]{1,100})=(\S+)")
_PROXY = re.compile(r"http://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]{1,253}):(\d{1,5})/?", re.ASCII)
# Headers for framing, headers that the HTTP client sets, and proxy headers.
_RESERVED_HEADERS = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "te", "trailer", "upgrade", "expect"}
    | {"accept-encoding", "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "range"}
    | {"keep-alive", "proxy-authorization", "proxy-connection", "user-agent"}
)


class SecretSource(StrEnum):
    """Where a secret is stored."""

    ENV = "env"  # an environment variable of the process that crawls
    BLOCK = "block"  # a Secret block of the Prefect server


class SecretReference(Struct, frozen=True):
    source: SecretSource
    name: str

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"


class AuthReference(Struct, frozen=True):
    """The Authorization header: basic (RFC 7617) with a user, else bearer (RFC 6750)."""

    user: SecretReference | None
    secret: SecretReference


class LoginReference(Struct, frozen=True):
    """A login with a form. path: the path of the page with the form.  fields: names and values of the form's fields."""

    path: str
    fields: tuple[tuple[str, SecretReference], ...]


class ProxyReference(Struct, frozen=True):
    """An HTTP proxy, with user and password if it requires them."""

    host: str
    port: int
    user: SecretReference | None = None
    password: SecretReference | None = None


class Credentials(Struct, frozen=True):
    """The credentials in a domain's settings. headers: sent with every request."""

    headers: tuple[tuple[str, SecretReference], ...] = ()
    auth: AuthReference | None = None
    login: LoginReference | None = None
    proxy: ProxyReference | None = None

    @property
    def references(self) -> tuple[SecretReference, ...]:
        """Return the references to all required secrets, without duplicates."""
        references: list[SecretReference | None] = [value for _, value in self.headers]
        references += [self.auth.user, self.auth.secret] if self.auth else []
        references += [value for _, value in self.login.fields] if self.login else []
        references += [self.proxy.user, self.proxy.password] if self.proxy else []
        return tuple(dict.fromkeys(filter(None, references)))


def parse_reference(text: str) -> SecretReference:
    """Parse a reference. Raise ValueError, without repeating the text, if it is invalid."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise ValueError(f"enter a reference to the secret, not the secret itself: {REFERENCE_HELP}")
    return SecretReference(SecretSource(match[1]), match[2])


def parse_header(text: str) -> tuple[str, SecretReference]:
    """Parse 'NAME: REFERENCE'. Raise ValueError if it is invalid."""
    match = _HEADER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"write a header as in 'X-Key: env:DOCS_KEY'; for its value {REFERENCE_HELP}")
    if match[1].lower() in _RESERVED_HEADERS:
        raise ValueError(f"recrawl sets the header {match[1]} itself; it cannot be configured")
    return match[1], parse_reference(match[2])


def parse_auth(text: str) -> AuthReference:
    """Parse 'basic REFERENCE REFERENCE' or 'bearer REFERENCE'. Raise ValueError if it is invalid."""
    match text.split():
        case [scheme, user, secret] if scheme.lower() == "basic":
            return AuthReference(parse_reference(user), parse_reference(secret))
        case [scheme, secret] if scheme.lower() == "bearer":
            return AuthReference(None, parse_reference(secret))
        case _:
            raise ValueError(f"write it as 'basic env:USER env:PASSWORD' or 'bearer env:TOKEN'; {REFERENCE_HELP}")


def parse_login(text: str) -> LoginReference:
    """Parse '/PATH FIELD=REFERENCE FIELD=REFERENCE'. Raise ValueError if it is invalid."""
    path, *words = text.split()
    fields = [_FIELD.fullmatch(word) for word in words]
    if not path.startswith("/") or path.startswith("//") or not fields or not all(fields) or len(fields) > MAX_FIELDS:
        example = "'/login user=env:DOCS_USER password=env:DOCS_PASS'"
        raise ValueError(f"write a login as the path of its form and the fields, as in {example}; {REFERENCE_HELP}")
    return LoginReference(path, tuple((match[1], parse_reference(match[2])) for match in fields if match))


def parse_proxy(text: str) -> ProxyReference:
    """Parse 'http://HOST:PORT' or 'http://HOST:PORT REFERENCE REFERENCE'. Raise ValueError if it is invalid."""
    url, *words = text.split()
    match = _PROXY.fullmatch(url)
    if match is None or not 0 < int(match[2]) < 65536 or len(words) not in {0, 2}:
        forms = "'http://HOST:PORT' or 'http://HOST:PORT env:USER env:PASSWORD'"
        raise ValueError(f"write a proxy as {forms}; {REFERENCE_HELP}")
    user, password = map(parse_reference, words) if words else (None, None)
    return ProxyReference(match[1].strip("[]"), int(match[2]), user, password)


def parse_credentials(headers: Sequence[str], auth: str, login: str, proxy: str) -> Credentials:
    """Parse the credentials in a domain's settings. Raise ValueError if a text is invalid."""
    return Credentials(
        headers=tuple(map(parse_header, headers)),
        auth=parse_auth(auth) if auth else None,
        login=parse_login(login) if login else None,
        proxy=parse_proxy(proxy) if proxy else None,
    )


class Cookies(Protocol):
    """The cookies of one domain (RFC 6265)."""

    def get_header(self, url: Url) -> str:
        """Return the value of the Cookie header for a request, or ""."""
        ...

    def store_cookies(self, url: Url, set_cookie_headers: Sequence[str]) -> None:
        """Store the cookies of a response. set_cookie_headers: the values of its Set-Cookie headers."""
        ...


@dataclass(frozen=True, slots=True)
class RequestAuth:
    """The credentials of one request. Contains secrets, so it is never stored, and its repr hides them.

    form: the fields of a POST.
    """

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cookies: Cookies | None = field(default=None, repr=False)
    form: tuple[tuple[str, str], ...] = field(default=(), repr=False)


NO_AUTH = RequestAuth()


def build_headers(credentials: Credentials, secrets: Mapping[SecretReference, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers to send with every request to the domain. secrets: the values of all references."""
    headers, auth = [(name, secrets[value]) for name, value in credentials.headers], credentials.auth
    if auth is not None:
        secret = secrets[auth.secret]
        value = format_basic_auth(secrets[auth.user], secret) if auth.user is not None else f"Bearer {secret}"
        headers.append(("Authorization", value))
    return tuple(headers)


def format_basic_auth(user: str, password: str) -> str:
    """Return the header value for basic authentication, in UTF-8 (RFC 7617, 2.1)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def explain_unusable_secret(secret: str) -> str:
    """Return why a secret cannot be sent (the end of a sentence, which does not repeat the secret), or ""."""
    if not secret:
        return "is empty"
    if len(secret) > MAX_SECRET_CHARS:
        return f"is longer than {MAX_SECRET_CHARS} characters"
    return "" if secret.isprintable() and secret.isascii() else "contains characters that are not allowed in a header"
