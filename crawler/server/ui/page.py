"""The page of one URL: why it is fetched when it is, its versions, and what differs between two of them."""

from dataclasses import dataclass
from datetime import datetime

from crawler.app.explain import Database, Domain, ParserPool, UrlExplanation, explain_page
from crawler.app.pages import PageHistory, VersionsQuery, read_history
from crawler.app.registration import url_of
from crawler.settings import settings

VERSIONS = 50  # shown at once


@dataclass(frozen=True, slots=True)
class UrlFacts:
    """What the page of one URL shows. history: None if it is not tracked."""

    explanation: UrlExplanation
    history: PageHistory | None


async def url_facts(
    db: Database, domain: Domain, text: str, query: VersionsQuery, *, readers: ParserPool, at: datetime
) -> UrlFacts:
    """Return all about one URL of a domain. Raises BadInput for what is none."""
    found = await explain_page(db, settings(), domain, url_of(text), at=at)
    if found.untracked:
        return UrlFacts(found, None)
    return UrlFacts(found, await read_history(db, domain, found.url, query, max_count=VERSIONS, readers=readers))
