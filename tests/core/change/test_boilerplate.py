"""What stands on nearly all pages of a domain, and what happens when the site changes it."""

from itertools import pairwise

from crawler.core.change.boilerplate import (
    ENOUGH_REPLACEMENTS,
    MAX_COUNTED_BLOCKS,
    NO_BOILERPLATE,
    Boilerplate,
    learn_page,
)
from crawler.core.change.difference import NO_DIFFERENCE
from crawler.core.http.urls import PageKey
from tests.core.pages import Domain

PAGE = "<nav class=menu>{menu}</nav><main><p>{own}</p></main><footer>{foot}</footer>"
OWN = ("the first page says so", "another subject on the second", "a third matter here", "of the fourth one", "fifth")


def shown(n: int, *, menu: str = "Home Docs", foot: str = "All rights kept", own: str = "") -> str:
    return PAGE.format(menu=menu, foot=foot, own=own or OWN[n])


def met(n: int) -> PageKey:
    return PageKey(n.to_bytes(16, "big"))


def known_domain(pages: int = 5) -> Domain:
    domain = Domain()
    for n in range(pages):
        domain.first(shown(n), path=str(n))
    return domain


def test_a_menu_that_was_edited_on_all_pages_is_no_news_of_any_after_three() -> None:
    domain = known_domain()

    found = [
        bool(domain.look(shown(n), shown(n, menu="Home Docs Shop"), shown(n, menu="Home Docs Shop"), path=str(n)))
        for n in range(5)
    ]

    assert found == [True, True, False, False, False]


def test_a_page_of_the_old_menu_has_no_news_however_many_blocks_were_met_since() -> None:
    domain = known_domain()
    for n in range(4):
        domain.look(shown(n), shown(n, menu="Home Shop"), path=str(n))
    for n in range(60):  # each line is on three pages, and on few of those that are visited meanwhile; then on one
        first = 160 * (n % 12 if n < 36 else n)
        words = "".join(f"<p>line {first + m}" for m in range(160))
        domain.first(shown(0, menu="Home Shop", own=words), path=f"long/{n}")
    assert len(domain.mask.boilerplate.counts) == MAX_COUNTED_BLOCKS

    assert not domain.look(shown(4), shown(4, menu="Home Shop"), path="4")


def test_news_of_a_page_is_reported_while_the_boilerplate_changes_around_it() -> None:
    domain = known_domain()
    for n in range(4):
        domain.look(shown(n), shown(n, menu="Home Shop"), path=str(n))

    left = domain.look(shown(4), shown(4, menu="Home Shop", own="it ends here"), path="4")

    assert [(one.text, other.text) for one, other in left.replaced] == [("fifth", "it ends here")]


def test_what_one_page_of_many_says_otherwise_is_news() -> None:
    domain = Domain()
    for n in range(10):
        domain.first(f"<h1>Item {n}</h1><p class=stock>in stock</p>", path=str(n))

    for n in (7, 8):
        left = domain.look(
            f"<h1>Item {n}</h1><p class=stock>in stock</p>",
            f"<h1>Item {n}</h1><p class=stock>sold out</p>",
            path=str(n),
        )
        assert [(one.text, other.text) for one, other in left.replaced] == [("in stock", "sold out")]


def test_two_pages_that_say_the_same_are_no_boilerplate() -> None:
    boilerplate = learn_page(learn_page(NO_BOILERPLATE, met(1), [(1, 10)]), met(2), [(1, 10)])

    assert not boilerplate.contains(10)
    assert learn_page(boilerplate, met(3), [(1, 10)]).contains(10)


def test_one_page_that_is_looked_at_often_is_no_boilerplate() -> None:
    boilerplate = NO_BOILERPLATE
    for _ in range(10):
        boilerplate = learn_page(boilerplate, met(1), [(1, 10)])

    assert not boilerplate.contains(10)


def test_a_block_that_the_last_pages_have_not_had_is_lost_and_was_boilerplate() -> None:
    boilerplate = NO_BOILERPLATE
    for n in range(4):
        boilerplate = learn_page(boilerplate, met(n), [(1, 10)])
    for n in range(3):
        assert not boilerplate.has_dropped(10)
        boilerplate = learn_page(boilerplate, met(n), [(1, 11)])

    assert boilerplate.has_dropped(10)
    assert boilerplate.was_boilerplate(10)
    assert not boilerplate.contains(10)
    assert boilerplate.contains(11)


def test_a_page_that_does_not_have_the_path_says_nothing_of_the_boilerplate() -> None:
    boilerplate = NO_BOILERPLATE
    for n in range(3):
        boilerplate = learn_page(boilerplate, met(n), [(1, 10)])
    for n in range(3, 30):
        boilerplate = learn_page(boilerplate, met(n), [(2, 1000 + n)])

    assert boilerplate.contains(10)


def test_a_path_of_the_boilerplate_that_had_three_texts_is_one_for_news_of_the_day() -> None:
    domain = known_domain()
    said = ["All rights kept", "Fair all week", "Expect some rain", "Storm from the west"]
    for before, after in pairwise(said):
        for n in range(5):
            domain.look(shown(n, foot=before), shown(n, foot=after), path=str(n))

    found = [domain.look(shown(n, foot=said[-1]), shown(n, foot="Snow"), path=str(n)) for n in (0, 1, 0)]

    assert [bool(left) for left in found] == [True, False, False]
    assert domain.look(shown(0), shown(0, own="Snow"), path="0")


def test_what_one_page_alone_says_where_the_boilerplate_says_something_else_now_and_then_is_its_news() -> None:
    rows = "<h1>{name}</h1><table><tr><td>{stock}<tr><td>Sold by us</table>"
    domain = Domain()
    for stock in ("In stock", "In stock now", "Available now", "Available"):
        for n in range(10):
            domain.first(rows.format(name=OWN[n % 5], stock=stock), path=str(n))

    available = rows.format(name=OWN[4], stock="Available")
    for stock in ("Sold out", "Recalled: do not use"):
        left = domain.look(available, available.replace("Available", stock), path="4")
        assert [(one.text, other.text) for one, other in left.replaced] == [("Available", stock)]

    domain.first(available, path="9")
    left = domain.look(available, available.replace("<tr><td>Available", ""), path="4")
    assert [(was and was.text, now) for was, now in left.sides] == [("Available", None)]


def test_a_site_that_is_restyled_by_other_classes_has_no_news() -> None:
    domain = known_domain()
    restyled = shown(0).replace("class=menu", "class='top bar'").replace("<main>", "<main class=wide>")

    assert domain.look(shown(0), restyled, path="0") == NO_DIFFERENCE


def test_what_comes_and_goes_from_page_to_page_was_boilerplate_by_chance() -> None:
    boilerplate = NO_BOILERPLATE
    for n, form in enumerate((10, 10, 10, 11, 10, 12, 10)):
        boilerplate = learn_page(boilerplate, met(n), [(1, form)])

    assert not boilerplate.was_boilerplate(10)


def test_blocks_that_stand_side_by_side_are_not_said_by_turns() -> None:
    boilerplate = NO_BOILERPLATE
    for n in range(5):
        boilerplate = learn_page(boilerplate, met(n), [(1, 10), (1, 11), (1, 12), (1, 13)])

    assert boilerplate.contains(13)
    assert not boilerplate.is_rotating_text(13)


def test_entries_that_came_side_by_side_after_one_had_gone_are_one_turn() -> None:
    boilerplate = NO_BOILERPLATE
    for menu in ((10, 11, 12), (10, 11), (10, 11, 13, 14, 15)):
        for n in range(5):
            boilerplate = learn_page(boilerplate, met(n), [(1, form) for form in menu])

    assert boilerplate.has_dropped(12)
    assert boilerplate.contains(15)
    assert not boilerplate.is_rotating_text(13)


def test_the_tables_are_bounded_and_what_most_pages_have_stays() -> None:
    boilerplate = Boilerplate()
    for n in range(3):
        boilerplate = learn_page(boilerplate, met(n), [(1, 10)])
    for n in range(30):
        pieces = [(1, 10), *((2 + 200 * n + k, 10_000 + 200 * n + k) for k in range(200))]
        boilerplate = learn_page(boilerplate, met(n), pieces)

    assert len(boilerplate.counts) == MAX_COUNTED_BLOCKS
    assert len(boilerplate.visits_by_path) <= MAX_COUNTED_BLOCKS
    assert boilerplate.contains(10)


def test_how_often_places_turned_is_forgotten_with_the_places() -> None:
    boilerplate = Boilerplate()
    for batch in range(5):
        for n in range(3):
            boilerplate = learn_page(boilerplate, met(n), [(5000 * batch + k, 5000 * batch + k) for k in range(1500)])

    assert len(boilerplate.replacements) <= MAX_COUNTED_BLOCKS


def test_pages_of_thousands_of_blocks_neither_push_out_the_boilerplate_nor_make_it_turn() -> None:
    menu, foot = [(1, 10), (2, 11)], [(3, 12)]
    boilerplate = NO_BOILERPLATE
    for n in range(40):
        own = [(100 + piece % 50, 1000 + 5000 * n + piece) for piece in range(5000 if n % 4 == 3 else 20)]
        boilerplate = learn_page(boilerplate, met(n), [*menu, *own, *foot])

    assert all(boilerplate.contains(form) for form in (10, 11, 12))
    assert max(boilerplate.replacements.values()) < ENOUGH_REPLACEMENTS
    assert len(boilerplate.counts) <= MAX_COUNTED_BLOCKS
