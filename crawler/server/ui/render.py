"""The pages as HTML: what each template is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from crawler.app.changes import EventKind, FeedItem
from crawler.app.overview import WINDOW, DomainFacts, HomeFacts, UncountedCard
from crawler.app.pieces import PickWay, PieceFacts
from crawler.app.try_page import Domain, TryResult, Why, list_blocks, list_differences
from crawler.format.reports import BUDGET_SOURCES
from crawler.server.ui import figures
from crawler.server.ui.facts import ChangeFacts, UrlFacts
from crawler.server.ui.links import SERVED, Addresses
from crawler.server.ui.shown import environment, style


@dataclass(frozen=True, slots=True)
class Notice:
    """What came of a form. href: where more of it can be seen."""

    said: str
    is_well: bool = True
    href: str = ""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at a page. word: what their forms carry; empty where there are none."""

    word: str = ""
    notice: Notice | None = None


NOBODY = Viewer()


def home_page(
    facts: HomeFacts, items: Sequence[FeedItem], *, links: Addresses = SERVED, reader: Viewer = NOBODY
) -> str:
    """All domains, and what changed of late."""
    return _page(
        "home.html", links, reader, facts=facts, items=items, window=WINDOW, freshness_plot=figures.freshness_plot
    )


def domain_page(
    facts: DomainFacts,
    items: Sequence[FeedItem],
    *,
    links: Addresses = SERVED,
    reader: Viewer = NOBODY,
    now: datetime | None = None,
) -> str:
    """One domain. now: when it is looked at, if the facts may be older; changes are told from then."""
    hours = [each.traffic for each in facts.hours]
    return _page(
        "domain.html",
        links,
        reader,
        facts=facts,
        words=figures.domain_words(facts),
        freshness=figures.freshness_plot(facts.card),
        now=max(now or facts.at, facts.at),
        items=items,
        worry=figures.worry_plot(facts, links),
        budget=figures.budget_plot(facts.forecast) if facts.forecast else None,
        sources=BUDGET_SOURCES,
        offered=figures.OFFERED_SETTINGS,
        traffic=figures.traffic_plot(hours, until=facts.at) if hours else None,
    )


def uncounted_page(card: UncountedCard, items: Sequence[FeedItem], *, reader: Viewer, now: datetime) -> str:
    """A large domain while it is counted for the first time."""
    return _page("uncounted.html", SERVED, reader, card=card, items=items, now=now)


def changes_page(facts: ChangeFacts, *, links: Addresses = SERVED, reader: Viewer = NOBODY, feed: str = "") -> str:
    """What changed. feed: the address of these changes for feed readers; empty for none."""
    return _page("changes.html", links, reader, facts=facts, kinds=list(EventKind), feed=feed)


def url_page(facts: UrlFacts, *, links: Addresses = SERVED, reader: Viewer = NOBODY, is_beside: bool = False) -> str:
    """One page of a domain. is_beside: the two versions stand side by side."""
    return _page("page.html", links, reader, facts=facts, is_beside=is_beside)


WAYS = {
    PickWay.IGNORE_TEXT: "Ignore text like this, wherever it stands",
    PickWay.IGNORE: "Ignore this place, whatever it says",
    PickWay.WATCH: "Watch only this place",
}


def pieces_page(facts: PieceFacts, *, reader: Viewer) -> str:
    """What of a page is compared."""
    return _page("pieces.html", SERVED, reader, facts=facts, ways=WAYS)


def try_page(seen: TryResult, domain: Domain, *, reader: Viewer) -> str:
    """What one look showed."""
    found = list_differences(seen)
    news = sum(why is Why.NOT for _, why in found)
    pieces = list_blocks(seen)
    return _page("try.html", SERVED, reader, seen=seen, domain=domain, pieces=pieces, differences=found, news=news)


def problem_page(title: str, said: str, *, reader: Viewer = NOBODY) -> str:
    """Why something cannot be shown."""
    return _page("problem.html", SERVED, reader, title=title, said=said)


def _page(template: str, links: Addresses, reader: Viewer, **given: object) -> str:
    """Return a page; the values that all templates may need are globals of the environment."""
    own_style = style() if links.are_files else ""
    return environment().get_template(template).render(links=links, reader=reader, style=own_style, **given)
