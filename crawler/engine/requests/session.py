"""What a domain is shown while this process crawls it, and the way to it; secrets are found when a lease begins.

Secrets, cookies and logins live in the memory of the process and nowhere else (docs/decisions/0028).
"""

import logging
import os
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from crawler.core.domain import Domain
from crawler.core.http.credentials import (
    NO_AUTH,
    Cookies,
    LoginReference,
    RequestAuth,
    SecretReference,
    SecretSource,
    build_headers,
    explain_unusable_secret,
)
from crawler.core.http.urls import Url, get_authority, get_scheme

if TYPE_CHECKING:  # as in resources.py
    from crawler.fetch import Http

log = logging.getLogger("recrawl.session")

NO_SECRET = "no_secret"  # the reason of a hold: a secret that the domain's settings name is not there  # noqa: S105
NO_CERTIFICATES = "no_certificates"  # likewise: the file of certificates cannot be read

# The secret that stands at a reference; None where there is none.
FindSecret = Callable[[SecretReference], Awaitable[str | None]]


async def read_environment_secret(reference: SecretReference) -> str | None:
    """A variable of this process; None for a block, which only who knows a Prefect server can read."""
    return os.environ.get(reference.name) if reference.source is SecretSource.ENV else None


async def find_secrets(
    references: Collection[SecretReference], find_secret: FindSecret
) -> dict[SecretReference, str] | str:
    """All secrets that are named; or why one cannot be used, as the reason of a hold, which tells its place alone."""
    secrets: dict[SecretReference, str] = {}
    for reference in references:
        secret = await find_secret(reference)
        problem = "is not there" if secret is None else explain_unusable_secret(secret)
        if secret is None or problem:
            log.warning("secret.unusable", extra={"reference": str(reference), "why": problem})
            return f"{NO_SECRET} {reference} {problem}"
        secrets[reference] = secret
    return secrets


class DomainSession:
    """What one domain is shown by this process, and by which client it is asked.

    http_client: the client that all its requests go by.  cookies: None where none are kept.  login: by a form, where
    the domain's user asks for one.
    """

    def __init__(
        self, domain: Domain, http_client: "Http", *, secrets: dict[SecretReference, str], cookies: Cookies | None
    ) -> None:
        self.http_client = http_client
        self._own_authorities = frozenset({domain.authority, *domain.aliases})
        self._is_secure = domain.scheme == "https"
        self.secrets = secrets
        self.login = domain.settings.credentials.login
        self._auth = NO_AUTH
        if secrets or cookies is not None:
            self._auth = RequestAuth(headers=build_headers(domain.settings.credentials, secrets), cookies=cookies)
        self.logins = 0  # how often a login has succeeded
        self.is_logged_in = self.login is None

    def is_own(self, url: Url) -> bool:
        """Whether a URL is the domain's own, so that it may be shown what its user gave for it.

        A domain that is asked by https is shown nothing by http, where anybody on the way could read it.
        """
        return get_authority(url) in self._own_authorities and (not self._is_secure or get_scheme(url) == "https")

    def choose_auth(self, url: Url, *, form: tuple[tuple[str, str], ...] = ()) -> RequestAuth:
        """What a request for this URL shows: nothing where it is not the domain's own, as after a redirect."""
        if not self.is_own(url):
            return NO_AUTH
        return replace(self._auth, form=form) if form else self._auth

    def get_login_values(self, login: LoginReference) -> dict[str, str]:
        """The fields of the login with their values."""
        return {name: self.secrets[reference] for name, reference in login.fields}
