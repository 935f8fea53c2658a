"""Registration of new domains by `recrawl crawl`, and remarks about any registration."""

from datetime import datetime

from crawler.app.database import AppDatabase
from crawler.app.domains import Domain, Fetched, add_domains, list_missing_secrets
from crawler.app.settings import DomainSettings, SettingsPatch
from crawler.cli.output import remark
from crawler.cli.session import settings
from crawler.errors import BadInput


def remark_missing_secrets(domain_settings: DomainSettings, *, unless: DomainSettings | None = None) -> None:
    """Print remarks about missing secrets of a domain. unless: earlier settings, whose secrets are not mentioned."""
    for sentence in list_missing_secrets(settings(), domain_settings, unless=unless):
        remark(f"recrawl: {sentence}")


async def probe_and_register(
    db: AppDatabase, name: str, patch: SettingsPatch, *, offline: bool, at: datetime
) -> tuple[Domain, Fetched | None]:
    """Register a domain for its crawl, print remarks, and return the domain and the response of its root page, if any.

    The caller must record a visit of that response, or charge its request to the domain's budget. Raises BadInput.
    """
    (added,) = await add_domains(db, [name], patch, offline=offline, keep_responses=True, at=at)
    if added.domain is None:
        raise BadInput(added.error)
    if added.is_new:
        warn_about_missing_contact(added.domain.settings)
        remark(f"Registered {added.domain.root}{format_aliases(added.domain)}")
        if added.warning:
            remark(added.warning)
    return added.domain, added.root_response


def warn_about_missing_contact(domain_settings: DomainSettings) -> None:
    """Print a remark if a public site is crawled without a contact address."""
    if not settings().contact and not domain_settings.allow_private:
        remark("recrawl: requests contain no contact address. Set RECRAWL_CONTACT to your URL or email address")


def format_aliases(domain: Domain) -> str:
    return f" (also {', '.join(sorted(domain.aliases))})" if domain.aliases else ""
