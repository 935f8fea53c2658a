"""Where a page leads: the links that a look makes known, within the domain and out of it."""

from urllib.parse import unquote, urlsplit

from crawler.core.http.urls import Authority, PageKey, Refusal, Url, authority_of, key_of
from crawler.core.page.content import PageContent
from crawler.core.visit.visit import ExternalLinks, Known, Link, Target, refusal_of

MOST_LINKS = 5000  # of one page; the rest says nothing about importance any more
MOST_EXTERNAL = 100  # other domains that one page links to


def links_of(content: PageContent, *, target: Target, known: Known) -> tuple[tuple[Link, ...], ExternalLinks]:
    """The distinct links to pages of this domain, each with why it may not be followed, and those to other domains.

    The page itself is left out.
    """
    followed = () if content.nofollow else (content.refresh, *content.links)
    found: dict[PageKey, Link] = {}
    external: dict[Authority, int] = {}
    for raw in filter(None, (content.canonical, *followed)):
        link = link_of(raw, depth=target.depth + 1, known=known)
        if link is None:
            authority = authority_of(raw)
            if authority in external or len(external) < MOST_EXTERNAL:
                external[authority] = external.get(authority, 0) + 1
        elif link.key != target.key:
            found.setdefault(link.key, link)
            if len(found) >= MOST_LINKS:
                break
    return tuple(found.values()), tuple(external.items())


def feeds_of(content: PageContent, *, target: Target, known: Known) -> tuple[Link, ...]:
    """The feeds of this domain that a page names in its head."""
    links = (link_of(raw, depth=target.depth + 1, known=known) for raw in content.feeds)
    return tuple(link for link in links if link is not None and not link.refusal and link.key != target.key)


def canonical_of(content: PageContent, links: tuple[Link, ...], *, known: Known) -> PageKey | None:
    """The page that this one names as its canonical, if that may be fetched: all cash goes there, as after a move."""
    if content.canonical is None or not links or links[0].refusal:
        return None
    return links[0].key if links[0].url == known.scope.home(content.canonical) else None


def link_of(raw: Url, *, depth: int, known: Known, is_list: bool = False) -> Link | None:
    """An in-domain link; None for a link to another domain. depth, is_list: of the page that it leads to."""
    url = known.scope.home(raw)
    refusal = refusal_of(url, depth=depth, known=known, is_list=is_list)
    if refusal == Refusal.OTHER_DOMAIN.value:
        return None
    return Link(key=key_of(url), url=url, refusal=refusal)


def led_to(target: Target, location: Url) -> PageKey:
    """The target of a redirect, without a query that repeats the page's own address.

    A sign-on page gets the address to send its reader back to in its query. Without it, all pages that redirect to one
    sign-on have one target.
    """
    own = urlsplit(target.url)._replace(scheme="", netloc="").geturl()
    base, _, query = location.partition("?")
    return key_of(Url(base) if own in unquote(query) else location)
