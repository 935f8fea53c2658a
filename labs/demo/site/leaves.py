"""Decide which sheets the living site has below its listings, and when they change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate, count, takewhile
from random import Random

from labs.demo.site import prose
from labs.demo.site.chance import Story, log_normal_rates, share_out, shuffled
from labs.demo.site.sheet import Behaviour, Serving, Sheet, SheetKind

B, S = Behaviour, Serving
BEHAVIOURS: Mapping[SheetKind, Mapping[Behaviour, float]] = {
    SheetKind.ARTICLE: {
        B.POISSON: 0.5,
        B.STEADY: 0.22,
        B.CLOCK: 0.1,
        B.VANISHING: 0.06,
        B.APPEARING: 0.06,
        B.MOVED: 0.06,
    },
    SheetKind.PRODUCT: {B.POISSON: 0.76, B.STEADY: 0.08, B.VANISHING: 0.06, B.APPEARING: 0.06, B.MOVED: 0.04},
    SheetKind.NEWS: {B.APPEARING: 0.6, B.STEADY: 0.4},
    SheetKind.TERM: {B.STEADY: 0.5, B.CLOCK: 0.4, B.POISSON: 0.1},
}
_HONEST = {S.BOTH: 0.3, S.ETAG: 0.2, S.LAST_MODIFIED: 0.25, S.NONE: 0.25}
_LYING = {S.LIAR_FROZEN: 0.05, S.LIAR_NOW: 0.05}  # only for sheets that change
SERVINGS: Mapping[Behaviour, Mapping[Serving, float]] = {
    B.POISSON: {S.BOTH: 0.25, S.ETAG: 0.15, S.LAST_MODIFIED: 0.2, S.NONE: 0.2, S.TOKEN: 0.1} | _LYING,
    B.STEADY: _HONEST | {S.TOKEN: 0.1},
    B.CLOCK: {S.NONE: 0.7, S.LAST_MODIFIED: 0.3},  # a date can describe the content; an ETag would describe the bytes
    B.VANISHING: _HONEST,
    B.APPEARING: _HONEST,
    B.MOVED: _HONEST,
}
OLDEST_DAYS = 1500  # before the start
BROKEN_AT = (
    (0.0, 0.03),
    (0.2, 0.25),
    (0.6, 0.65),
)  # fractions of the story's length; the first is during the first crawl


def leaves_of(story: Story, kind: SheetKind, number: int, topics: Sequence[prose.Topic]) -> list[Sheet]:
    """Return sheets of one kind, without links, with the shares of behaviors, servings and rates in the tables."""
    odds = story.chance(kind)
    behaviours = shuffled(odds, share_out(number, BEHAVIOURS[kind]))
    servings = {b: iter(shuffled(odds, share_out(behaviours.count(b), SERVINGS[b]))) for b in BEHAVIOURS[kind]}
    rates = iter(shuffled(odds, log_normal_rates(behaviours.count(B.POISSON))))
    taken: set[str] = set()
    sheets = []
    for n, behaviour in enumerate(behaviours):
        topic, serving = topics[n % len(topics)], next(servings[behaviour])
        sheet = leaf(story, odds, kind, topic, behaviour=behaviour, serving=serving, taken=taken)
        sheets.append(edited(story, odds, sheet, next(rates)) if behaviour is B.POISSON else sheet)
    return sheets


def leaf(
    story: Story,
    odds: Random,
    kind: SheetKind,
    topic: prose.Topic,
    *,
    behaviour: Behaviour,
    serving: Serving,
    taken: set[str],
) -> Sheet:
    """Return a sheet that is never edited, at a free path, which is added to `taken`."""
    title = prose.title(odds, topic)
    since = story.instant(odds.uniform(0.01, 0.97)) if behaviour is B.APPEARING else None
    until = story.instant(odds.uniform(0.08, 0.95)) if behaviour in {B.VANISHING, B.MOVED} else None
    written = since or story.ago(odds.uniform(1, 60 if kind is SheetKind.NEWS else OLDEST_DAYS))
    path = free(folder(kind, topic, written) + prose.slug(title), taken)
    ending = ".html" if kind is SheetKind.PRODUCT else ""
    return Sheet(
        path=path + ending,
        kind=kind,
        title=title,
        topic=topic.name,
        behaviour=behaviour,
        serving=serving,
        written=written,
        since=since,
        until=until,
        ends_as=301 if behaviour is B.MOVED else odds.choice((404, 410)),
        moves_to=f"{path}-revised{ending}" if behaviour is B.MOVED else None,
    )


def folder(kind: SheetKind, topic: prose.Topic, written: datetime) -> str:
    match kind:
        case SheetKind.ARTICLE:
            return f"/articles/{topic.name}/"
        case SheetKind.PRODUCT:
            return f"/shop/{topic.name}/"
        case SheetKind.NEWS:
            return f"/news/{written:%Y/%m}/"
        case _:
            return f"/{kind}/"


def free(path: str, taken: set[str]) -> str:
    """Reserve the path, with a number if it is taken, and return it."""
    chosen = next(p for p in (path if n == 1 else f"{path}-{n}" for n in count(1)) if p not in taken)
    taken.add(chosen)
    return chosen


def edited(story: Story, odds: Random, sheet: Sheet, rate_per_day: float) -> Sheet:
    """Return the sheet with the instants of a Poisson process; the age of its first version fits the rate, too."""
    gaps = (odds.expovariate(rate_per_day) for _ in count())
    days = takewhile(lambda day: day < story.days, accumulate(gaps))
    changes = sorted({story.instant(day / story.days) for day in days})
    written = story.ago(min(odds.expovariate(rate_per_day), OLDEST_DAYS))
    return replace(sheet, rate_per_day=rate_per_day, changes=tuple(changes), written=written)


def with_faults(story: Story, sheets: Sequence[Sheet]) -> list[Sheet]:
    """Return the sheets with faults in three that never change: they respond with status 500 for a while."""
    # The redirect chain ends at the first steady sheet.
    faulty = [sheet.path for sheet in sheets if sheet.behaviour is B.STEADY][1 : 1 + len(BROKEN_AT)]
    windows = [(story.instant(begin) if begin else story.start, story.instant(end)) for begin, end in BROKEN_AT]
    broken = dict(zip(faulty, windows, strict=True))
    return [replace(sheet, broken=broken.get(sheet.path)) for sheet in sheets]
