"""What a domain's user has it be shown to let us in: headers, authentication, a login, a proxy; secrets by reference.

A reference says where a secret stands (env:NAME, block:NAME) and is all that is ever typed, stored or shown. No message
here repeats what was typed: it may be a secret that somebody typed in place of a reference.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from crawler.core.http.urls import Url

MAX_FIELDS = 16  # of a login
MAX_SECRET_CHARS = 8192  # of a value; a session token is rarely half as long
REFERENCE_HELP = "name where it stands, env:NAME for a variable or block:NAME for a Prefect secret block"

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}"  # RFC 9110, 5.6.2  # noqa: S105  a pattern, no secret
_REFERENCE = re.compile(r"(env|block):([A-Za-z_][A-Za-z0-9_-]{0,127})", re.ASCII)
_HEADER = re.compile(rf"({_TOKEN})\s*:\s*(\S+)", re.ASCII)
_FIELD = re.compile(r"([^\s=]{1,100})=(\S+)")
_PROXY = re.compile(r"http://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]{1,253}):(\d{1,5})/?", re.ASCII)
# Framing, what this client says by itself, and what is the proxy's alone.
_RESERVED_HEADERS = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "te", "trailer", "upgrade", "expect"}
    | {"accept-encoding", "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "range"}
    | {"keep-alive", "proxy-authorization", "proxy-connection", "user-agent"}
)


class SecretSource(StrEnum):
    """Where a secret stands."""

    ENV = "env"  # a variable of the process that crawls
    BLOCK = "block"  # a Secret block of the Prefect server


@dataclass(frozen=True, slots=True)
class SecretReference:
    """The place of a secret."""

    source: SecretSource
    name: str

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"


@dataclass(frozen=True, slots=True)
class AuthReference:
    """The header Authorization: basic (RFC 7617) with a user, bearer (RFC 6750) without one."""

    user: SecretReference | None
    secret: SecretReference


@dataclass(frozen=True, slots=True)
class LoginReference:
    """A login by a form. path: of the form's page.  fields: of the form, by name, and where their values stand."""

    path: str
    fields: tuple[tuple[str, SecretReference], ...]


@dataclass(frozen=True, slots=True)
class ProxyReference:
    """An http proxy, and where its user and password stand, if it asks for any."""

    host: str
    port: int
    user: SecretReference | None = None
    password: SecretReference | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """All that a domain is shown, as its settings have it. headers: of every request, and where their values stand."""

    headers: tuple[tuple[str, SecretReference], ...] = ()
    auth: AuthReference | None = None
    login: LoginReference | None = None
    proxy: ProxyReference | None = None

    @property
    def references(self) -> tuple[SecretReference, ...]:
        """Every secret that has to be there, each once."""
        references: list[SecretReference | None] = [value for _, value in self.headers]
        references += [self.auth.user, self.auth.secret] if self.auth else []
        references += [value for _, value in self.login.fields] if self.login else []
        references += [self.proxy.user, self.proxy.password] if self.proxy else []
        return tuple(dict.fromkeys(filter(None, references)))


def parse_reference(text: str) -> SecretReference:
    """A reference as it is typed. ValueError, which does not repeat it, for anything else."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise ValueError(f"a secret is not typed here: {REFERENCE_HELP}")
    return SecretReference(SecretSource(match[1]), match[2])


def parse_header(text: str) -> tuple[str, SecretReference]:
    """'NAME: REFERENCE'. ValueError."""
    match = _HEADER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a header is written as in 'X-Key: env:DOCS_KEY'; of its value, {REFERENCE_HELP}")
    if match[1].lower() in _RESERVED_HEADERS:
        raise ValueError(f"the header {match[1]} is recrawl's own to send")
    return match[1], parse_reference(match[2])


def parse_auth(text: str) -> AuthReference:
    """'basic REFERENCE REFERENCE' or 'bearer REFERENCE'. ValueError."""
    match text.split():
        case [scheme, user, secret] if scheme.lower() == "basic":
            return AuthReference(parse_reference(user), parse_reference(secret))
        case [scheme, secret] if scheme.lower() == "bearer":
            return AuthReference(None, parse_reference(secret))
        case _:
            raise ValueError(f"it is written 'basic env:USER env:PASSWORD' or 'bearer env:TOKEN': {REFERENCE_HELP}")


def parse_login(text: str) -> LoginReference:
    """'/PATH FIELD=REFERENCE FIELD=REFERENCE'. ValueError."""
    path, *words = text.split()
    fields = [_FIELD.fullmatch(word) for word in words]
    if not path.startswith("/") or path.startswith("//") or not fields or not all(fields) or len(fields) > MAX_FIELDS:
        raise ValueError(
            f"a login is the path of its form and its fields, as in '/login user=env:DOCS_USER password=env:DOCS_PASS':"
            f" {REFERENCE_HELP}"
        )
    return LoginReference(path, tuple((match[1], parse_reference(match[2])) for match in fields if match))


def parse_proxy(text: str) -> ProxyReference:
    """'http://HOST:PORT' or 'http://HOST:PORT REFERENCE REFERENCE'. ValueError."""
    url, *words = text.split()
    match = _PROXY.fullmatch(url)
    if match is None or not 0 < int(match[2]) < 65536 or len(words) not in {0, 2}:
        raise ValueError(
            f"a proxy is written 'http://HOST:PORT' or 'http://HOST:PORT env:USER env:PASSWORD': {REFERENCE_HELP}"
        )
    user, password = map(parse_reference, words) if words else (None, None)
    return ProxyReference(match[1].strip("[]"), int(match[2]), user, password)


def parse_credentials(headers: Sequence[str], auth: str, login: str, proxy: str) -> Credentials:
    """The credentials that the texts of a domain's settings name. ValueError."""
    return Credentials(
        headers=tuple(map(parse_header, headers)),
        auth=parse_auth(auth) if auth else None,
        login=parse_login(login) if login else None,
        proxy=parse_proxy(proxy) if proxy else None,
    )


class Cookies(Protocol):
    """The cookies of one domain, by the rules of RFC 6265."""

    def get_header(self, url: Url) -> str:
        """The value of the header Cookie for a request; empty for none."""
        ...

    def store_cookies(self, url: Url, set_cookie_headers: Sequence[str]) -> None:
        """Keep what an answer has set. set_cookie_headers: the values of its headers Set-Cookie."""
        ...


@dataclass(frozen=True, slots=True)
class RequestAuth:
    """What one request shows to be let in. Holds secrets: it is stored nowhere, and its repr tells none.

    form: fields of a POST.
    """

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cookies: Cookies | None = field(default=None, repr=False)
    form: tuple[tuple[str, str], ...] = field(default=(), repr=False)


NO_AUTH = RequestAuth()


def build_headers(credentials: Credentials, secrets: Mapping[SecretReference, str]) -> tuple[tuple[str, str], ...]:
    """The headers of every request to the domain. secrets: of all its references."""
    headers = [(name, secrets[value]) for name, value in credentials.headers]
    auth = credentials.auth
    if auth is not None and auth.user is not None:
        headers.append(("Authorization", format_basic_auth(secrets[auth.user], secrets[auth.secret])))
    elif auth is not None:
        headers.append(("Authorization", f"Bearer {secrets[auth.secret]}"))
    return tuple(headers)


def format_basic_auth(user: str, password: str) -> str:
    """The value of a header for basic authentication, in UTF-8 (RFC 7617, 2.1)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def explain_unusable_secret(secret: str) -> str:
    """Why a secret cannot be sent, as the end of a sentence that does not tell it; empty if it can."""
    if not secret:
        return "is empty"
    if len(secret) > MAX_SECRET_CHARS:
        return f"is longer than {MAX_SECRET_CHARS} characters"
    return "" if secret.isprintable() and secret.isascii() else "has characters that a header cannot have"
