"""Draw the sites from a seed: their pages, the noise of each section, and the edits before each visit."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks.change import development, held_out
from benchmarks.change.content import Content, first_content, manner_of
from benchmarks.change.dialect import Dialect, Layout, pick
from benchmarks.change.edits import DIGITS, EDITS
from benchmarks.change.frame import Frame
from benchmarks.change.serialise import REWRITES
from benchmarks.change.site import Page, Reform, Section, Site
from benchmarks.change.source import PACKAGES, Source, sources
from benchmarks.change.widgets import WIDGETS, Place, class_names
from crawler.core.http.urls import Url

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
SITES = 44  # enough that each kind of noise is alone in two sections, and each dialect meets each package
SECTIONS = 4
PAGES_PER_SECTION = 8
VISITS = 8
LONG_VISITS = 51
LONG_EVERY = 3  # every third site has a page with LONG_VISITS visits, whose price changes every day
EDITED_SHARE = 0.85
DAILY = "price-daily"
BESIDE = "price-beside-counter"
BEFORE_A_VISIT = timedelta(hours=6)

DEALT = [kind for kind in EDITS if kind not in {DAILY, BESIDE}]
BESIDE_SHARE = 0.5  # of the pages whose price is in line with a counter

MIXED = "mixed"
NOTHING = "nothing"
NOISES = (*WIDGETS, *REWRITES, "charset", NOTHING)
REFORMS = ("menu-entry", "", "footer", "notice", "restyled", "")


def sites(seed: int, *, is_held_out: bool, most: int = SITES) -> Sequence[tuple[int, int, bool]]:
    """Return the names of the sites. A site is drawn from its name when it is needed."""
    return [(seed, number, is_held_out) for number in range(most)]


def site(seed: int, number: int, is_held_out: bool) -> Site:  # noqa: FBT001  a name of three parts
    pool = held_out.POOL if is_held_out else development.POOL
    key = f"{seed}/{'held-out' if is_held_out else 'development'}/{number}"
    rng = Random(key)
    dialect = pool[number // len(PACKAGES) % len(pool)]
    layout = dialect.layouts[rng.randrange(len(dialect.layouts))]
    rounds = _rounds(rng)
    sections = _sections(key, number, Random(f"{seed}/{is_held_out}"), dialect)
    host = f"site{number}.test"
    words = _frame(key, dialect, layout, sections, rng)
    reform = Reform(REFORMS[number // 3 % len(REFORMS)], rounds[rng.randrange(2, VISITS - 1)] - BEFORE_A_VISIT)
    chosen = sources(PACKAGES[number % len(PACKAGES)], rng, count=SECTIONS * PAGES_PER_SECTION)
    pages = _pages(host, chosen, sections, dialect, rounds=rounds, rng=rng, has_long=number % LONG_EVERY == 0)
    reformed = _reformed(words, reform.kind, rng)
    return Site(key, host, dialect, layout, words, reform, reformed, pages, rounds)


def _rounds(rng: Random) -> tuple[datetime, ...]:
    """Return the times of the rounds: some days apart, and one day apart for the pages with the most visits."""
    days = [0]
    for visit in range(1, LONG_VISITS):
        days.append(days[-1] + (rng.randrange(1, 4) if visit < VISITS else 1))
    return tuple(START + timedelta(days=day, minutes=rng.randrange(120)) for day in days)


def _sections(key: str, number: int, rng: Random, dialect: Dialect) -> tuple[Section, ...]:
    """Draw the sections. In every third site all have the same noise; in others, two have one kind of noise each."""
    order = rng.sample(NOISES, len(NOISES))
    is_uniform = number % 3 == 2
    turn = 2 * (number - number // 3)
    made = []
    for at in range(SECTIONS):
        name = f"{key}/{0 if is_uniform else at}"
        own = Random(name)
        is_single = not is_uniform and at < 2
        noises = [order[(turn + at) % len(order)]] if is_single else own.sample(NOISES[:-1], own.randrange(3, 7))
        made.append(
            Section(
                key=name,
                path=pick(Random(f"{key}/path/{at}"), dialect.stems) + str(at),
                noise=noises[0] if is_single else MIXED,
                widgets=tuple((kind, own.choice(WIDGETS[kind][2])) for kind in noises if kind in WIDGETS),
                rewrites=frozenset(noises) - WIDGETS.keys() - {NOTHING},
                manner=manner_of(dialect, own),
            )
        )
    return tuple(made)


def _frame(key: str, dialect: Dialect, layout: Layout, sections: Sequence[Section], rng: Random) -> Frame:
    menu = [("/", dialect.menu[0])]
    menu += [(f"/{sections[n % SECTIONS].path}/{n}.html", words) for n, words in enumerate(dialect.menu[1:])]
    return Frame(
        dialect=dialect,
        layout=layout,
        names=class_names(dialect, key),
        build=f"{rng.getrandbits(32):08x}",
        site=f"Example {rng.randrange(100)}",
        menu=tuple(menu),
        notice="",
        footer=pick(rng, dialect.footer).format(y=2026),
    )


def _reformed(frame: Frame, kind: str, rng: Random) -> Frame:
    match kind:
        case "menu-entry":
            at = rng.randrange(1, len(frame.menu) + 1)
            entry = ("/later.html", pick(rng, frame.dialect.menu_later))
            return replace(frame, menu=(*frame.menu[:at], entry, *frame.menu[at:]))
        case "footer":
            return replace(frame, footer=frame.footer.replace("2026", "2027"))
        case "notice":
            return replace(frame, notice=pick(rng, frame.dialect.notice))
        case "restyled":
            names = {role: f"{name} v2-{name[:2]}" for role, name in frame.names.items()}
            return replace(frame, names=names, build=f"{rng.getrandbits(32):08x}")
        case _:
            return frame


def _pages(
    host: str,
    chosen: Sequence[Source],
    sections: Sequence[Section],
    dialect: Dialect,
    *,
    rounds: Sequence[datetime],
    rng: Random,
    has_long: bool,
) -> tuple[Page, ...]:
    deck = [kind for _ in range(3) for kind in rng.sample(DEALT, len(DEALT))]
    firsts = [first_content(source, dialect, rng) for source in chosen]
    pages = []
    for at, source in enumerate(chosen):
        section = sections[at // PAGES_PER_SECTION]
        url = Url(f"https://{host}/{section.path}/{source.name}-{at}.html")
        is_long = has_long and at == 0
        others = [other for other in firsts if other is not firsts[at]]
        kind, visits, contents = _life(firsts[at], others, section, deck, rng, is_long=is_long)
        edited_at = tuple(rounds[visit] - BEFORE_A_VISIT for visit in visits)
        pages.append(Page(url, section, kind, contents, edited_at, LONG_VISITS if is_long else VISITS))
    return tuple(pages)


def _life(
    first: Content, others: Sequence[Content], section: Section, deck: list[str], rng: Random, *, is_long: bool
) -> tuple[str, tuple[int, ...], tuple[Content, ...]]:
    """Return a page's kind of edit, the visits before which it is edited, and its contents.

    The kind is the first one in the deck that applies to the page.
    """
    if not is_long and rng.random() >= EDITED_SHARE:
        return "", (), (first,)
    for kind in _offered(section, deck, rng, is_long=is_long):
        visits = _edited_visits(kind, rng)
        contents = _edited(first, others, kind, times=len(visits), rng=rng)
        if contents is not None:
            if kind in deck:
                deck.remove(kind)
            return kind, visits, contents
    raise AssertionError("every page has a title to edit, and titles are dealt three times")


def _offered(section: Section, deck: Sequence[str], rng: Random, *, is_long: bool) -> Sequence[str]:
    if is_long:
        return (DAILY,)
    if not any(place is Place.PRICE for _, place in section.widgets):
        return list(deck)
    return (BESIDE,) if rng.random() < BESIDE_SHARE else [kind for kind in deck if not kind.startswith("price")]


def _edited_visits(kind: str, rng: Random) -> tuple[int, ...]:
    """Return the visits before which a page is edited.

    Half of the digit edits come before the first visit that can be judged, when nothing has been learned yet.
    """
    if kind == DAILY:
        return tuple(range(1, LONG_VISITS))
    first = 1 if kind in DIGITS and rng.random() < 0.5 else rng.randrange(1, VISITS)
    again = {rng.randrange(1, VISITS)} if rng.random() < 0.4 else set()
    return tuple(sorted({first} | again))


def _edited(
    first: Content, others: Sequence[Content], kind: str, *, times: int, rng: Random
) -> tuple[Content, ...] | None:
    contents = [first]
    for _ in range(times):
        after = EDITS[kind](contents[-1], rng.choice(others), rng)
        if after is None or after == contents[-1]:
            return None
        contents.append(after)
    return tuple(contents)


def kinds_of(site: Site) -> frozenset[str]:
    """Return the kinds of edits, noise and template change of a site."""
    of_pages = {kind for page in site.pages for kind in (page.kind, page.section.noise)}
    return frozenset(of_pages | {site.reform.kind}) - {""}
