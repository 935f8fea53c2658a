"""The pages as HTML: what each template is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from crawler.app.blocks import BlockFacts, PickAction
from crawler.app.changes import EventKind, FeedItem
from crawler.app.overview import WINDOW, DomainFacts, HomeFacts, UncountedCard
from crawler.app.try_page import Domain, MaskReason, TryResult, list_blocks, list_differences
from crawler.format.reports import BUDGET_SOURCES
from crawler.server.ui import figures
from crawler.server.ui.facts import ChangeFacts, UrlFacts
from crawler.server.ui.links import SERVER_LINKS, UiLinks
from crawler.server.ui.templating import get_environment, read_style


@dataclass(frozen=True, slots=True)
class FlashMessage:
    """What came of a form. href: where more of it can be seen."""

    said: str
    is_well: bool = True
    href: str = ""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at a page. word: what their forms carry; empty where there are none."""

    word: str = ""
    notice: FlashMessage | None = None


ANONYMOUS = Viewer()


def render_home_page(
    facts: HomeFacts, items: Sequence[FeedItem], *, links: UiLinks = SERVER_LINKS, viewer: Viewer = ANONYMOUS
) -> str:
    """All domains, and what changed of late."""
    return _render(
        "home.html", links, viewer, facts=facts, items=items, window=WINDOW, freshness_plot=figures.build_freshness_plot
    )


def render_domain_page(
    facts: DomainFacts,
    items: Sequence[FeedItem],
    *,
    links: UiLinks = SERVER_LINKS,
    viewer: Viewer = ANONYMOUS,
    now: datetime | None = None,
) -> str:
    """One domain. now: when it is looked at, if the facts may be older; changes are told from then."""
    hours = [each.traffic for each in facts.hours]
    return _render(
        "domain.html",
        links,
        viewer,
        facts=facts,
        words=figures.describe_domain(facts),
        freshness=figures.build_freshness_plot(facts.card),
        now=max(now or facts.at, facts.at),
        items=items,
        worry=figures.build_staleness_plot(facts, links),
        budget=figures.build_budget_plot(facts.forecast) if facts.forecast else None,
        sources=BUDGET_SOURCES,
        offered=figures.OFFERED_SETTINGS,
        traffic=figures.build_traffic_plot(hours, until=facts.at) if hours else None,
    )


def render_uncounted_page(card: UncountedCard, items: Sequence[FeedItem], *, viewer: Viewer, now: datetime) -> str:
    """A large domain while it is counted for the first time."""
    return _render("uncounted.html", SERVER_LINKS, viewer, card=card, items=items, now=now)


def render_changes_page(
    facts: ChangeFacts, *, links: UiLinks = SERVER_LINKS, viewer: Viewer = ANONYMOUS, feed: str = ""
) -> str:
    """What changed. feed: the address of these changes for feed readers; empty for none."""
    return _render("changes.html", links, viewer, facts=facts, kinds=list(EventKind), feed=feed)


def render_url_page(
    facts: UrlFacts, *, links: UiLinks = SERVER_LINKS, viewer: Viewer = ANONYMOUS, is_beside: bool = False
) -> str:
    """One page of a domain. is_beside: the two versions stand side by side."""
    return _render("page.html", links, viewer, facts=facts, is_beside=is_beside)


PICK_LABELS = {
    PickAction.IGNORE_TEXT: "Ignore text like this, wherever it stands",
    PickAction.IGNORE: "Ignore this place, whatever it says",
    PickAction.WATCH: "Watch only this place",
}


def pieces_page(facts: BlockFacts, *, viewer: Viewer) -> str:
    """What of a page is compared."""
    return _render("pieces.html", SERVER_LINKS, viewer, facts=facts, ways=PICK_LABELS)


def render_try_page(seen: TryResult, domain: Domain, *, viewer: Viewer) -> str:
    """What one look showed."""
    differences = list_differences(seen)
    news = sum(why is MaskReason.NONE for _, why in differences)
    pieces = list_blocks(seen)
    return _render(
        "try.html", SERVER_LINKS, viewer, seen=seen, domain=domain, pieces=pieces, differences=differences, news=news
    )


def render_problem_page(title: str, said: str, *, viewer: Viewer = ANONYMOUS) -> str:
    """Why something cannot be shown."""
    return _render("problem.html", SERVER_LINKS, viewer, title=title, said=said)


def _render(template: str, links: UiLinks, reader: Viewer, **context: object) -> str:
    """Return a page; the values that all templates may need are globals of the environment."""
    inline_style = read_style() if links.are_files else ""
    return get_environment().get_template(template).render(links=links, reader=reader, style=inline_style, **context)
