"""Pages that lead to the leaves: links in texts, listings, and a few other pages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random

from labs.demo.site.chance import Story, shuffled
from labs.demo.site.sheet import Behaviour, Serving, Sheet, SheetKind
from labs.demo.site.site import CHAIN, DISALLOWED, month_path

ZIPF = 0.9  # exponent of how often the nth most popular page is linked, so that in-degrees follow a power law


def tied(story: Story, leaves: Sequence[Sheet]) -> list[Sheet]:
    """Return the leaves with links between them; few leaves get many links and most get few.

    Only initial sheets are linked, so that no text changes when another sheet appears. Links to sheets that vanish or
    move stay, as on real sites.
    """
    odds = story.chance("links")
    popular = shuffled(odds, [sheet.path for sheet in leaves if sheet.since is None])
    weights = list(accumulate((rank + 1) ** -ZIPF for rank in range(len(popular))))
    return [replace(leaf, links=drawn(odds, leaf.path, popular, weights)) for leaf in leaves]


def drawn(odds: Random, own: str, paths: Sequence[str], cumulated: Sequence[float]) -> tuple[str, ...]:
    """Return four to ten paths, fewer if some are drawn twice."""
    found = odds.choices(paths, cum_weights=cumulated, k=odds.randint(4, 10))
    return tuple(path for path in dict.fromkeys(found) if path != own)


def listings(story: Story, leaves: Sequence[Sheet]) -> Iterator[Sheet]:
    """Yield every sheet that lists others, the home page first. Together they list every leaf."""
    news = [sheet for sheet in leaves if sheet.kind is SheetKind.NEWS]
    yield listing(story, "/", "The Millbrook Almanac", news, links=most_linked(leaves, 10))
    yield listing(story, "/news/", "News", news, links=(month_path(story.start),))
    yield listing(story, "/glossary/", "Glossary", [sheet for sheet in leaves if sheet.kind is SheetKind.TERM])
    for kind, path, title in ((SheetKind.ARTICLE, "/articles/", "Articles"), (SheetKind.PRODUCT, "/shop/", "Shop")):
        branches = list(branch(story, path, title, [sheet for sheet in leaves if sheet.kind is kind]))
        yield listing(story, path, title, branches)
        yield from branches
    months = list(archive(story, news))
    yield listing(story, "/archive/", "Archive", months)
    yield from months


def branch(story: Story, path: str, title: str, leaves: Sequence[Sheet]) -> Iterator[Sheet]:
    for topic in sorted({sheet.topic for sheet in leaves}):
        yield listing(story, f"{path}{topic}/", f"{title}: {topic}", [leaf for leaf in leaves if leaf.topic == topic])


def archive(story: Story, news: Sequence[Sheet]) -> Iterator[Sheet]:
    """Yield one listing per month with news; it appears with the first news of the month."""
    for month in sorted({f"{sheet.written:%Y-%m}" for sheet in news}):
        of_month = [sheet for sheet in news if f"{sheet.written:%Y-%m}" == month]
        yield listing(story, f"/archive/{month}/", f"Archive of {month}", of_month)


def listing(story: Story, path: str, title: str, children: Sequence[Sheet], links: tuple[str, ...] = ()) -> Sheet:
    """Return a sheet that changes exactly when a child appears, and appears with the first if there is none before."""
    odds = story.chance("listing", path)
    arrivals = sorted({child.since for child in children if child.since is not None})
    since = None if any(child.since is None for child in children) else arrivals.pop(0)
    dated = [child.written for child in children if child.kind is SheetKind.NEWS and child.since is None]
    return Sheet(
        path=path,
        kind=SheetKind.LISTING,
        title=title,
        topic=children[0].topic,
        behaviour=Behaviour.LISTING if since is None else Behaviour.APPEARING,
        serving=odds.choice((Serving.BOTH, Serving.LAST_MODIFIED, Serving.ETAG, Serving.NONE)),
        written=since or max(dated, default=story.ago(odds.uniform(30, 400))),
        changes=tuple(arrivals),
        rate_per_day=len(arrivals) / story.days,
        since=since,
        lists=tuple(child.path for child in sorted(children, key=newest_first)),
        links=links,
    )


def newest_first(sheet: Sheet) -> tuple[float, str]:
    return (-sheet.written.timestamp() if sheet.kind is SheetKind.NEWS else 0.0, sheet.path)


def most_linked(leaves: Sequence[Sheet], number: int) -> tuple[str, ...]:
    times = Counter(path for leaf in leaves for path in leaf.links)
    return tuple(sorted(times, key=lambda path: (-times[path], path))[:number])


def plain(story: Story) -> Iterator[Sheet]:
    """Yield the about and contact pages, and the section that robots.txt excludes, to which about links."""
    closed = tuple(f"{DISALLOWED}{name}" for name in ("", "accounts", "drafts", "minutes", "reports"))
    yield steady(story, "/about/", "About the almanac", ("/contact/", closed[0], CHAIN[0]))
    yield steady(story, "/contact/", "Contact", ("/about/",))
    for n, path in enumerate(closed):
        yield steady(story, path, f"Members only, {n}", closed[1:])


def steady(story: Story, path: str, title: str, links: tuple[str, ...]) -> Sheet:
    return Sheet(
        path=path,
        kind=SheetKind.PLAIN,
        title=title,
        topic="libraries",
        behaviour=Behaviour.STEADY,
        serving=Serving.BOTH,
        written=story.ago(500),
        links=links,
    )
