"""Rendering of the pages: each function passes its data to one template."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from crawler.app.blocks import BlockFacts, PickAction
from crawler.app.changes import FeedItem
from crawler.app.overview import DomainHead, DomainList, DomainOrder
from crawler.app.page_values import ValuePreview
from crawler.app.search import SearchFacts
from crawler.app.system import SystemFacts
from crawler.app.try_page import Domain, MaskReason, TryResult, list_blocks, list_differences
from crawler.server.identity import Identity
from crawler.server.needs import get_need
from crawler.server.ui.change_and_url_pages import ChangeFacts, UrlFacts
from crawler.server.ui.domain_plots import build_value_plot
from crawler.server.ui.domain_tabs import Tab, describe_head
from crawler.server.ui.links import SERVER_LINKS, UiLinks
from crawler.server.ui.templating import get_environment, read_style


@dataclass(frozen=True, slots=True)
class FlashMessage:
    """A message about the outcome of a form. href: the address of the crawl run that it started, or empty."""

    message: str
    is_well: bool = True
    href: str = ""


@dataclass(frozen=True, slots=True)
class Viewer:
    """The viewer of a page. csrf_token: the token in their forms; empty on pages without forms.

    notice: the outcome of the form that they sent last; None if there is none to show.  identity: None without a login.
    """

    csrf_token: str = ""
    notice: FlashMessage | None = None
    identity: Identity | None = None

    def may(self, path: str) -> bool:
        """Return whether the viewer may send the form of this path, so that pages show only what works."""
        return self.identity is not None and get_need(path) in self.identity.actor.permissions


ANONYMOUS = Viewer()


def render_overview_page(
    facts: DomainList,
    items: Sequence[FeedItem],
    *,
    links: UiLinks = SERVER_LINKS,
    viewer: Viewer = ANONYMOUS,
    **context: object,
) -> str:
    """Render the overview. context: on the server, health, undelivered notifications and the number of new changes."""
    return render("overview.html", links, viewer, facts=facts, items=items, orders=DOMAIN_ORDERS, **context)


DOMAIN_ORDERS = {
    DomainOrder.NAME: "Domain",
    DomainOrder.FRESHNESS: "Freshness",
    DomainOrder.PAGES: "Pages",
    DomainOrder.CHANGES: "Changes in 24 hours",
    DomainOrder.BUDGET: "Budget used today",
    DomainOrder.NEXT_VISIT: "Next visit",
}


def render_domains_page(facts: DomainList, tags: Sequence[str], *, viewer: Viewer) -> str:
    """Render the list of domains. tags: the names of all tags."""
    return render("domains.html", SERVER_LINKS, viewer, facts=facts, orders=DOMAIN_ORDERS, tags=tags)


def render_domain_page(
    head: DomainHead,
    tabs: Sequence[Tab],
    *,
    links: UiLinks = SERVER_LINKS,
    viewer: Viewer = ANONYMOUS,
    **context: object,
) -> str:
    """Render parts of the page of a domain: one on the server, several in a file. context: the values of the parts."""
    return render("domain.html", links, viewer, head=head, words=describe_head(head), tabs=tabs, **context)


def render_changes_page(
    facts: ChangeFacts,
    *,
    links: UiLinks = SERVER_LINKS,
    viewer: Viewer = ANONYMOUS,
    feed: str = "",
    read_until: int | None = None,
) -> str:
    """Render the list of changes.

    feed: the address of the Atom feed of these changes; empty for none.  read_until: the position of the last change
    that this browser marked as read; None for no marks.
    """
    return render("changes.html", links, viewer, facts=facts, feed=feed, read_until=read_until)


def render_url_page(
    facts: UrlFacts, *, links: UiLinks = SERVER_LINKS, viewer: Viewer = ANONYMOUS, is_beside: bool = False
) -> str:
    """Render the page about one URL. is_beside: whether to show the compared versions side by side."""
    values = [(each, build_value_plot(each, until=facts.explanation.known.at)) for each in facts.values]
    return render("page.html", links, viewer, facts=facts, values=values, is_beside=is_beside)


PICK_LABELS = {
    PickAction.IGNORE_TEXT: "Ignore text like this anywhere on the page",
    PickAction.IGNORE: "Ignore this element of the page",
    PickAction.WATCH: "Watch only this element of the page",
    PickAction.VALUES: "Track the number in this element as a value",
}


def render_blocks_page(facts: BlockFacts, *, viewer: Viewer) -> str:
    """Render the blocks of a page; the user can pick one to ignore or watch."""
    return render("blocks.html", SERVER_LINKS, viewer, facts=facts, actions=PICK_LABELS)


def render_value_form(preview: ValuePreview, *, viewer: Viewer) -> str:
    """Render the form that adds a value, with what it would read."""
    return render("values.html", SERVER_LINKS, viewer, facts=preview, request=preview.request)


def render_try_page(seen: TryResult, domain: Domain, *, viewer: Viewer) -> str:
    """Render the result of a test fetch."""
    differences = list_differences(seen)
    changes = sum(why is MaskReason.NONE for _, why in differences)
    context = {"seen": seen, "domain": domain, "blocks": list_blocks(seen), "differences": differences}
    return render("try.html", SERVER_LINKS, viewer, changes=changes, **context)


def render_search_page(facts: SearchFacts, *, viewer: Viewer) -> str:
    """Render the results of a search."""
    return render("search.html", SERVER_LINKS, viewer, facts=facts, words=facts.words)


def render_system_page(facts: SystemFacts, *, viewer: Viewer, now: datetime) -> str:
    """Render the state of the installation."""
    return render("system.html", SERVER_LINKS, viewer, facts=facts, now=now)


def render_problem_page(title: str, detail: str, *, viewer: Viewer = ANONYMOUS) -> str:
    """Render an error page."""
    return render("problem.html", SERVER_LINKS, viewer, title=title, detail=detail)


def render(template: str, links: UiLinks, viewer: Viewer, **context: object) -> str:
    """Render a template; values that all templates may need are globals of the environment."""
    inline_style = read_style() if links.are_files else ""
    return get_environment().get_template(template).render(links=links, viewer=viewer, style=inline_style, **context)
