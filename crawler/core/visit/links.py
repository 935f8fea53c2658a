"""The links of a page, within the domain and to other domains."""

from urllib.parse import unquote, urlsplit

from crawler.core.http.urls import Authority, ExclusionReason, PageKey, Url, compute_page_key, get_authority
from crawler.core.page.content import PageContent
from crawler.core.visit.visit import DomainKnowledge, ExternalLinks, Link, Target, find_exclusion

MAX_LINKS = 5000  # of one page; further links say nothing about importance
MAX_KEPT_CHARS = 200  # of a link that is kept resolved, so that a hostile site cannot fill the memory
MAX_EXTERNAL = 100  # other domains per page


def resolve_links(
    content: PageContent, *, target: Target, knowledge: DomainKnowledge
) -> tuple[tuple[Link, ...], ExternalLinks]:
    """Return the distinct links to pages of this domain (with exclusion reasons), and the links to other domains.

    Links to the page itself are omitted. Of a page with nofollow, only the canonical page is a link.
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
    """Return the feeds that a page lists, as far as they are in this domain and may be fetched."""
    links = (resolve_link(raw, depth=target.depth + 1, knowledge=knowledge) for raw in content.feeds)
    return tuple(link for link in links if link is not None and not link.exclusion and link.key != target.key)


def find_canonical(content: PageContent, links: tuple[Link, ...], *, knowledge: DomainKnowledge) -> PageKey | None:
    """Return the canonical page that a page names, if it is another one that may be fetched, else None.

    links: the resolved links, of which the canonical page is the first.
    """
    if content.canonical is None or not links or links[0].exclusion:
        return None
    return links[0].key if links[0].url == knowledge.scope.to_domain_url(content.canonical) else None


def resolve_link(raw: Url, *, depth: int, knowledge: DomainKnowledge, is_list: bool = False) -> Link | None:
    """Return an in-domain link, or None for a link to another domain.

    depth: the distance of its target from the nearest seed, in links.  is_list: whether the target is a URL list.
    """
    known = knowledge.resolved.choose(knowledge.scope, knowledge.rules, knowledge.agent)
    place = (raw, -1 if is_list else depth if knowledge.scope.max_depth is not None else 0)
    if place in known:
        return known[place]
    url = knowledge.scope.to_domain_url(raw)
    exclusion = find_exclusion(url, depth=depth, knowledge=knowledge, is_list=is_list)
    is_own = exclusion != ExclusionReason.OTHER_DOMAIN.value
    link = Link(key=compute_page_key(url), url=url, exclusion=exclusion) if is_own else None
    if len(raw) <= MAX_KEPT_CHARS:
        known[place] = link
    return link


def compute_redirect_key(target: Target, location: Url) -> PageKey:
    """Return the key of a redirect's target, without a query that repeats the page's own address.

    Login pages get the address to return to in the query. Without it, all pages that redirect to one login page have
    the same target.
    """
    own_address = urlsplit(target.url)._replace(scheme="", netloc="").geturl()
    base, _, query = location.partition("?")
    return compute_page_key(Url(base) if own_address in unquote(query) else location)
