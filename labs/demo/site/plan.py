"""Create the living site of a seed."""

from datetime import UTC, datetime, timedelta

from labs.demo.site.chance import Story
from labs.demo.site.leaves import leaves_of, with_faults
from labs.demo.site.listings import listings, plain, tied
from labs.demo.site.prose import TOPICS
from labs.demo.site.sheet import Behaviour, Sheet, SheetKind
from labs.demo.site.site import Site

MIN_PAGES = 80  # with fewer, some behavior would have no page
SHARES = {SheetKind.PRODUCT: 0.22, SheetKind.NEWS: 0.14, SheetKind.TERM: 0.13}  # of all pages; the rest are articles
TOPS = 8  # home, articles, shop, news, archive, glossary, about, contact


def make_site(seed: int, *, pages: int = 250, start: datetime, days: float = 45) -> Site:
    """Create the site of a seed; equal arguments give identical sites in any process.

    pages: total number of sheets at all times; the disallowed section, the calendar and the redirect chain are extra.
    start: an aware instant; fractions of seconds are dropped.  days: how long the site changes.
    """
    if pages < MIN_PAGES or days < 1 or start.tzinfo is None:
        raise ValueError(f"a site needs {MIN_PAGES} pages, 1 day and an aware start, got: {pages}, {days}, {start}")
    start = start.astimezone(UTC).replace(microsecond=0)
    story = Story(seed, start, start + timedelta(seconds=int(days * 86_400)))
    leaves = tied(story, leaves_below(story, pages))
    sheets = [*leaves, *listings(story, leaves), *plain(story)]
    return Site(
        seed=seed,
        start=story.start,
        end=story.end,
        sheets_by_path={sheet.path: sheet for sheet in sheets},
        moved_by_path={sheet.moves_to: sheet for sheet in sheets if sheet.moves_to},
        chain_end=next(s.path for s in leaves if s.kind is SheetKind.ARTICLE and s.behaviour is Behaviour.STEADY),
    )


def leaves_below(story: Story, pages: int) -> list[Sheet]:
    """Return every sheet that lists nothing, so that with listings the site has `pages` in total."""
    sections = min(len(TOPICS), max(2, round(pages / 40)))
    categories = min(4, max(2, round(pages / 80)))
    sizes = {kind: round(share * pages) for kind, share in SHARES.items()}
    news = leaves_of(story, SheetKind.NEWS, sizes[SheetKind.NEWS], TOPICS)
    months = len({f"{sheet.written:%Y-%m}" for sheet in news})
    articles = pages - sum(sizes.values()) - TOPS - sections - categories - months
    return [
        *with_faults(story, leaves_of(story, SheetKind.ARTICLE, articles, TOPICS[:sections])),
        *leaves_of(story, SheetKind.PRODUCT, sizes[SheetKind.PRODUCT], TOPICS[:categories]),
        *news,
        *leaves_of(story, SheetKind.TERM, sizes[SheetKind.TERM], TOPICS),
    ]
