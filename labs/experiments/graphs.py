"""The whole graph of links of one domain, to compare importance with the true one."""

from dataclasses import dataclass

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url
from crawler.store.database import Database
from crawler.store.frontier import unpack_keys

# Pages that have cash. The root comes first, as no URL of a domain is shorter.
PAGES = """
    SELECT p.key, p.url, l.targets
      FROM cash c
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = c.key
      LEFT JOIN page_links l ON l.domain_id = %(domain_id)s AND l.key = c.key
     WHERE c.domain_id = %(domain_id)s
     ORDER BY length(p.url), p.url
"""


@dataclass(frozen=True, slots=True)
class Links:
    """A domain's pages and their links: outlinks[n] are indexes in urls, for page n."""

    urls: tuple[Url, ...]
    outlinks: tuple[tuple[int, ...], ...]


async def links_of(db: Database, domain: Domain) -> Links:
    """Read the pages of the domain that have cash, the root first, and the links between them."""
    urls: list[Url] = []
    numbers: dict[PageKey, int] = {}
    targets: list[tuple[PageKey, ...]] = []
    async with db.transaction() as connection:
        async for key, url, packed in await connection.execute(PAGES, {"domain_id": domain.id}):
            numbers[PageKey(key)] = len(urls)
            urls.append(Url(url))
            targets.append(unpack_keys(packed))
    outlinks = (tuple(numbers[key] for key in row if key in numbers) for row in targets)
    return Links(urls=tuple(urls), outlinks=tuple(outlinks))
