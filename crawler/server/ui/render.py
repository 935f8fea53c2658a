"""The pages as HTML: what each template is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from crawler.app.changes import EventKind, FeedItem
from crawler.app.overview import WINDOW, DomainFacts, HomeFacts, UncountedCard
from crawler.app.pages import BlockStatus
from crawler.app.pieces import PickWay, PieceFacts
from crawler.app.try_page import Domain, TryResult, Why, list_blocks, list_differences
from crawler.format.reasons import NO_NEWS_WORDS
from crawler.server.ui import diffs
from crawler.server.ui.changes import NAMES, SPANS, ChangeFacts
from crawler.server.ui.domain import (
    OFFERED_SETTINGS,
    SOURCES,
    budget_plot,
    domain_words,
    step_rows,
    traffic_plot,
    worry_plot,
)
from crawler.server.ui.home import freshness_plot
from crawler.server.ui.links import Addresses
from crawler.server.ui.page import UrlFacts
from crawler.server.ui.shown import rendered, style


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


def home_page(facts: HomeFacts, items: Sequence[FeedItem], *, links: Addresses, reader: Viewer = NOBODY) -> str:
    """All domains, and what changed of late."""
    return _page(
        "home.html", links, reader, facts=facts, items=items, names=NAMES, window=WINDOW, freshness_plot=freshness_plot
    )


def domain_page(
    facts: DomainFacts,
    items: Sequence[FeedItem],
    *,
    links: Addresses,
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
        words=domain_words(facts),
        freshness=freshness_plot(facts.card),
        now=max(now or facts.at, facts.at),
        items=items,
        names=NAMES,
        worry=worry_plot(facts, links),
        budget=budget_plot(facts.forecast) if facts.forecast else None,
        steps=step_rows(facts.forecast) if facts.forecast else [],
        sources=SOURCES,
        offered=OFFERED_SETTINGS,
        traffic=traffic_plot(hours, until=facts.at) if hours else None,
    )


def uncounted_page(
    card: UncountedCard, items: Sequence[FeedItem], *, links: Addresses, reader: Viewer, now: datetime
) -> str:
    """A large domain while it is counted for the first time."""
    return _page("uncounted.html", links, reader, card=card, items=items, names=NAMES, now=now)


def changes_page(facts: ChangeFacts, *, links: Addresses, reader: Viewer = NOBODY, feed: str = "") -> str:
    """What changed. feed: the address of these changes for feed readers; empty for none."""
    return _page("changes.html", links, reader, facts=facts, names=NAMES, kinds=list(EventKind), spans=SPANS, feed=feed)


def url_page(facts: UrlFacts, *, links: Addresses, reader: Viewer = NOBODY, is_beside: bool = False) -> str:
    """One page of a domain. is_beside: the two versions stand side by side."""
    return _page("page.html", links, reader, facts=facts, names=NAMES, is_beside=is_beside)


def pieces_page(facts: PieceFacts, *, links: Addresses, reader: Viewer = NOBODY) -> str:
    """What of a page is compared."""
    return _page("pieces.html", links, reader, facts=facts, ways=WAYS, reasons=NO_NEWS_WORDS)


WAYS = {
    PickWay.IGNORE_TEXT: "Ignore text like this, wherever it stands",
    PickWay.IGNORE: "Ignore this place, whatever it says",
    PickWay.WATCH: "Watch only this place",
}


def try_page(seen: TryResult, domain: Domain, *, links: Addresses, reader: Viewer = NOBODY) -> str:
    """What one look showed."""
    found = list_differences(seen)
    return _page(
        "try.html",
        links,
        reader,
        seen=seen,
        domain=domain,
        pieces=list_blocks(seen),
        differences=found,
        news=sum(why is Why.NOT for _, why in found),
        reasons=NO_NEWS_WORDS,
    )


def problem_page(title: str, said: str, *, links: Addresses | None = None, reader: Viewer = NOBODY) -> str:
    """Why something cannot be shown."""
    return _page("problem.html", links or Addresses(), reader, title=title, said=said)


def _page(template: str, links: Addresses, reader: Viewer, **given: object) -> str:
    return rendered(
        template,
        links=links,
        reader=reader,
        style=style() if links.are_files else "",
        diffs=diffs,
        BlockStatus=BlockStatus,
        Why=Why,
        **given,
    )
