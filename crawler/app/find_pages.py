"""Which page a person means by a URL, and which of its versions by a number, a span or a day."""

from datetime import UTC, datetime, timedelta

from crawler.app.registration import domain_named, scope_of, url_of
from crawler.core.domain import Domain
from crawler.core.http import Url, authority_of, key_of
from crawler.errors import BadInput, CrawlerError
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, VersionContent
from crawler.times import format_instant


async def page_named(db: Database, text: str) -> tuple[Domain, Url]:
    """The registered domain of a URL, and the URL as that domain spells it. Raises BadInput."""
    url = url_of(text)
    domain = await domain_named(db, authority_of(url))
    return domain, scope_of(domain, domain.settings).home(url)


async def changes_of(db: Database, text: str) -> ChangeFilter:
    """The changes of a domain, of one page, or of all pages beneath a URL that is no page. Raises BadInput."""
    domain, url = await page_named(db, text)
    if url == domain.root:
        return ChangeFilter(domain_id=domain.id)
    if await report.versions_of(db, domain, url, most=1):
        return ChangeFilter(domain_id=domain.id, key=key_of(url))
    return ChangeFilter(domain_id=domain.id, prefix=url)


async def version_named(
    db: Database, domain: Domain, url: Url, wanted: int | timedelta | datetime | None, *, now: datetime
) -> VersionContent:
    """The version of that number, or the newest at an instant or so long ago; None: the newest of all.

    Raises CrawlerError where there is none.
    """
    number = wanted if isinstance(wanted, int) else None
    at = now - wanted if isinstance(wanted, timedelta) else wanted if isinstance(wanted, datetime) else None
    found = await report.version_of(db, domain, url, number=number, at=at)
    if found is not None and not found.version.is_kept:
        raise CrawlerError(
            f"version {found.version.number} of {url}, of {format_instant(found.version.at)}, was thinned out: its text"
            f" is not kept (--keep-versions); recrawl versions {url} tells of which it is"
        )
    if found is not None:
        return found
    every = await report.versions_of(db, domain, url, most=1)
    if not every:
        raise CrawlerError(f"no version of {url} is kept: recrawl explain {url} says why")
    if number is not None and 0 < number < every[0].number:
        raise CrawlerError(f"version {number} of {url} is forgotten (--keep-changes): recrawl versions {url}")
    if number is not None:
        raise BadInput(f"{url} has no version {number}; its newest is {every[0].number}: recrawl versions {url}")
    first = await report.version_of(db, domain, url, number=1)
    seen = f"; it was first seen at {format_instant(first.version.at)}" if first else ""
    raise CrawlerError(f"nothing is known of {url} at {format_instant(at or datetime.now(UTC))}{seen}")
