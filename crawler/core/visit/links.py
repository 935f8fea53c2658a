"""Where a page leads: the links that a look makes known, within the domain and out of it."""

from urllib.parse import unquote, urlsplit

from crawler.core.http import Authority, PageKey, Refusal, Url, authority_of, key_of
from crawler.core.page import PageContent
from crawler.core.visit.visit import ExternalLinks, Known, Link, Target, refusal_of

MOST_LINKS = 5000  # of one page; the rest says nothing about importance any more
MOST_ELSEWHERE = 100  # other domains that one page links to


def links_of(reading: PageContent, *, target: Target, known: Known) -> tuple[tuple[Link, ...], ExternalLinks]:
    """The distinct links to pages of this domain, each with why it may not be followed, and those to other domains.

    The page itself is left out.
    """
    followed = () if reading.nofollow else (reading.refresh, *reading.links)
    found: dict[PageKey, Link] = {}
    elsewhere: dict[Authority, int] = {}
    for raw in filter(None, (reading.canonical, *followed)):
        link = link_of(raw, target=target, known=known)
        if link is None:
            authority = authority_of(raw)
            if authority in elsewhere or len(elsewhere) < MOST_ELSEWHERE:
                elsewhere[authority] = elsewhere.get(authority, 0) + 1
        elif link.key != target.key:
            found.setdefault(link.key, link)
            if len(found) >= MOST_LINKS:
                break
    return tuple(found.values()), tuple(elsewhere.items())


def canonical_of(reading: PageContent, links: tuple[Link, ...], *, known: Known) -> PageKey | None:
    """The page whose copy this one says it is, if it may be fetched: all its cash goes there, as from a moved page."""
    if reading.canonical is None or not links or links[0].refusal:
        return None
    return links[0].key if links[0].url == known.scope.home(reading.canonical) else None


def link_of(raw: Url, *, target: Target, known: Known) -> Link | None:
    """An in-domain link; None for one that leads elsewhere."""
    url = known.scope.home(raw)
    refusal = refusal_of(url, depth=target.depth + 1, known=known)
    if refusal == Refusal.OTHER_DOMAIN.value:
        return None
    return Link(key=key_of(url), url=url, refusal=refusal)


def led_to(target: Target, location: Url) -> PageKey:
    """The place that a redirect leads to, whoever is led there: without a query that repeats the page's own address.

    A sign-on is told there where to send its reader back to, so each page is led to an address of its own.
    """
    own = urlsplit(target.url)._replace(scheme="", netloc="").geturl()
    place, _, query = location.partition("?")
    return key_of(Url(place) if own in unquote(query) else location)
