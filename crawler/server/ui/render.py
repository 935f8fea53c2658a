"""Rendering of the pages: each function passes its data to one template."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from crawler.app.blocks import BlockFacts, PickAction
from crawler.app.changes import EventKind, FeedItem
from crawler.app.overview import WINDOW, DomainFacts, HomeFacts, UncountedCard
from crawler.app.try_page import Domain, MaskReason, TryResult, list_blocks, list_differences
from crawler.format.reports import BUDGET_SOURCES
from crawler.server.ui import domain_plots
from crawler.server.ui.change_and_url_pages import ChangeFacts, UrlFacts
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

    notice: the outcome of the form that they sent last; None if there is none to show.
    """

    csrf_token: str = ""
    notice: FlashMessage | None = None


ANONYMOUS = Viewer()


def render_home_page(
    facts: HomeFacts, items: Sequence[FeedItem], *, links: UiLinks = SERVER_LINKS, viewer: Viewer = ANONYMOUS
) -> str:
    """Render the list of domains with the recent changes."""
    build_plot = domain_plots.build_freshness_plot
    return _render("home.html", links, viewer, facts=facts, items=items, window=WINDOW, freshness_plot=build_plot)


def render_domain_page(
    facts: DomainFacts,
    items: Sequence[FeedItem],
    *,
    links: UiLinks = SERVER_LINKS,
    viewer: Viewer = ANONYMOUS,
    now: datetime | None = None,
) -> str:
    """Render the page of a domain. now: the time of the request; None if the facts were read at that time."""
    hours = [each.traffic for each in facts.hours]
    return _render(
        "domain.html",
        links,
        viewer,
        facts=facts,
        words=domain_plots.describe_domain(facts),
        freshness=domain_plots.build_freshness_plot(facts.card),
        now=max(now or facts.at, facts.at),
        items=items,
        staleness=domain_plots.build_staleness_plot(facts, links),
        budget=domain_plots.build_budget_plot(facts.forecast) if facts.forecast else None,
        sources=BUDGET_SOURCES,
        offered=domain_plots.FORM_SETTINGS,
        traffic=domain_plots.build_traffic_plot(hours, until=facts.at) if hours else None,
    )


def render_uncounted_page(card: UncountedCard, items: Sequence[FeedItem], *, viewer: Viewer, now: datetime) -> str:
    """Render the page of a large domain whose pages are being counted for the first time."""
    return _render("uncounted.html", SERVER_LINKS, viewer, card=card, items=items, now=now)


def render_changes_page(
    facts: ChangeFacts, *, links: UiLinks = SERVER_LINKS, viewer: Viewer = ANONYMOUS, feed: str = ""
) -> str:
    """Render the list of changes. feed: the address of the Atom feed of these changes; empty for none."""
    return _render("changes.html", links, viewer, facts=facts, kinds=list(EventKind), feed=feed)


def render_url_page(
    facts: UrlFacts, *, links: UiLinks = SERVER_LINKS, viewer: Viewer = ANONYMOUS, is_beside: bool = False
) -> str:
    """Render the page about one URL. is_beside: whether to show the compared versions side by side."""
    return _render("page.html", links, viewer, facts=facts, is_beside=is_beside)


PICK_LABELS = {
    PickAction.IGNORE_TEXT: "Ignore text like this anywhere on the page",
    PickAction.IGNORE: "Ignore this element of the page",
    PickAction.WATCH: "Watch only this element of the page",
}


def render_blocks_page(facts: BlockFacts, *, viewer: Viewer) -> str:
    """Render the blocks of a page; the user can pick one to ignore or watch."""
    return _render("blocks.html", SERVER_LINKS, viewer, facts=facts, actions=PICK_LABELS)


def render_try_page(seen: TryResult, domain: Domain, *, viewer: Viewer) -> str:
    """Render the result of a test fetch."""
    differences = list_differences(seen)
    changes = sum(why is MaskReason.NONE for _, why in differences)
    context = {"seen": seen, "domain": domain, "blocks": list_blocks(seen), "differences": differences}
    return _render("try.html", SERVER_LINKS, viewer, changes=changes, **context)


def render_problem_page(title: str, detail: str, *, viewer: Viewer = ANONYMOUS) -> str:
    """Render an error page."""
    return _render("problem.html", SERVER_LINKS, viewer, title=title, detail=detail)


def _render(template: str, links: UiLinks, viewer: Viewer, **context: object) -> str:
    """Render a template; values that all templates may need are globals of the environment."""
    inline_style = read_style() if links.are_files else ""
    return get_environment().get_template(template).render(links=links, viewer=viewer, style=inline_style, **context)
