"""The session of a domain in this process: HTTP client, credentials, cookies and login.

Secrets are looked up when a lease begins. Secrets, cookies and logins exist only in the memory of the process
(docs/decisions/0028).
"""

import logging
import os
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace

from crawler.core.domain import NO_SECRET, Domain
from crawler.core.http import credentials
from crawler.core.http.credentials import NO_AUTH, Cookies, LoginReference, RequestAuth, SecretReference, SecretSource
from crawler.core.http.urls import Url, get_authority, get_scheme
from crawler.errors import BadInput
from crawler.fetch import Http

log = logging.getLogger("recrawl.session")


Secrets = dict[SecretReference, str]
# Looks up the secret of a reference; None if it does not exist.
FindSecret = Callable[[SecretReference], Awaitable[str | None]]


async def read_environment_secret(reference: SecretReference) -> str | None:
    """Return the value of an environment variable; None for a Prefect block, which cannot be read here."""
    return os.environ.get(reference.name) if reference.source is SecretSource.ENV else None


async def find_secrets(references: Collection[SecretReference], find_secret: FindSecret) -> Secrets | str:
    """Look up all secrets; if one is missing or unusable, return the reason for a suspension, without any secret."""
    secrets: Secrets = {}
    for reference in references:
        try:
            secret = await find_secret(reference)
            problem = "is not there" if secret is None else credentials.explain_unusable_secret(secret)
        except BadInput as error:  # the file of a secret cannot be read
            secret, problem = None, f"is not there ({error})"
        if secret is None or problem:
            log.warning("secret.unusable", extra={"reference": str(reference), "why": problem})
            return f"{NO_SECRET} {reference} {problem}"
        secrets[reference] = secret
    return secrets


class DomainSession:
    """The session of one domain in this process.

    http_client: the client for all its requests.  cookies: its cookie jar; None if cookies are not kept.
    login: its login through a form; None if it has none.
    """

    def __init__(self, domain: Domain, http_client: Http, *, secrets: Secrets, cookies: Cookies | None) -> None:
        self.http_client = http_client
        self._own_authorities = frozenset({domain.authority, *domain.aliases})
        self._is_secure = domain.scheme == "https"
        self.secrets = secrets
        self.login = domain.settings.credentials.login
        self._auth = NO_AUTH
        if secrets or cookies is not None:
            headers = credentials.build_headers(domain.settings.credentials, secrets)
            self._auth = RequestAuth(headers=headers, cookies=cookies)
        self.logins = 0  # how many logins have succeeded
        self.is_logged_in = self.login is None

    def is_own(self, url: Url) -> bool:
        """Return whether a URL belongs to the domain, so that credentials may be sent to it.

        The credentials of an https domain are never sent over http, where others could read them.
        """
        return get_authority(url) in self._own_authorities and (not self._is_secure or get_scheme(url) == "https")

    def choose_auth(self, url: Url, *, form: tuple[tuple[str, str], ...] = ()) -> RequestAuth:
        """Return the credentials for a request: none if the URL is not the domain's own, as after a redirect."""
        if not self.is_own(url):
            return NO_AUTH
        return replace(self._auth, form=form) if form else self._auth

    def get_login_values(self, login: LoginReference) -> dict[str, str]:
        """Return the fields of the login with their values."""
        return {name: self.secrets[reference] for name, reference in login.fields}
