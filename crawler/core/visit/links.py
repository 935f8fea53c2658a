"""Where a page leads: the links that a look makes known, within the domain and out of it."""

from urllib.parse import unquote, urlsplit

from crawler.core.http.urls import Authority, ExclusionReason, PageKey, Url, compute_page_key, get_authority
from crawler.core.page.content import PageContent
from crawler.core.visit.visit import DomainKnowledge, ExternalLinks, Link, Target, find_exclusion

MAX_LINKS = 5000  # of one page; the rest says nothing about importance any more
MAX_EXTERNAL = 100  # other domains that one page links to


def resolve_links(
    content: PageContent, *, target: Target, knowledge: DomainKnowledge
) -> tuple[tuple[Link, ...], ExternalLinks]:
    """The distinct links to pages of this domain, each with why it may not be followed, and those to other domains.

    The page itself is left out.
    """
    followed = () if content.nofollow else (content.refresh, *content.links)
    links: dict[PageKey, Link] = {}
    external: dict[Authority, int] = {}
    for raw in filter(None, (content.canonical, *followed)):
        link = resolve_link(raw, depth=target.depth + 1, knowledge=knowledge)
        if link is None:
            authority = get_authority(raw)
            if authority in external or len(external) < MAX_EXTERNAL:
                external[authority] = external.get(authority, 0) + 1
        elif link.key != target.key:
            links.setdefault(link.key, link)
            if len(links) >= MAX_LINKS:
                break
    return tuple(links.values()), tuple(external.items())


def resolve_feeds(content: PageContent, *, target: Target, knowledge: DomainKnowledge) -> tuple[Link, ...]:
    """The feeds of this domain that a page names in its head."""
    links = (resolve_link(raw, depth=target.depth + 1, knowledge=knowledge) for raw in content.feeds)
    return tuple(link for link in links if link is not None and not link.exclusion and link.key != target.key)


def find_canonical(content: PageContent, links: tuple[Link, ...], *, knowledge: DomainKnowledge) -> PageKey | None:
    """The page that this one names as its canonical, if that may be fetched: all cash goes there, as after a move."""
    if content.canonical is None or not links or links[0].exclusion:
        return None
    return links[0].key if links[0].url == knowledge.scope.to_domain_url(content.canonical) else None


def resolve_link(raw: Url, *, depth: int, knowledge: DomainKnowledge, is_list: bool = False) -> Link | None:
    """An in-domain link; None for a link to another domain. depth, is_list: of the page that it leads to."""
    url = knowledge.scope.to_domain_url(raw)
    exclusion = find_exclusion(url, depth=depth, knowledge=knowledge, is_list=is_list)
    if exclusion == ExclusionReason.OTHER_DOMAIN.value:
        return None
    return Link(key=compute_page_key(url), url=url, exclusion=exclusion)


def compute_redirect_key(target: Target, location: Url) -> PageKey:
    """The target of a redirect, without a query that repeats the page's own address.

    A sign-on page gets the address to send its reader back to in its query. Without it, all pages that redirect to one
    sign-on have one target.
    """
    own_address = urlsplit(target.url)._replace(scheme="", netloc="").geturl()
    base, _, query = location.partition("?")
    return compute_page_key(Url(base) if own_address in unquote(query) else location)
