"""Boilerplate of a domain, and edits of it by the site."""

from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

from crawler.core.change.boilerplate import (
    ENOUGH_REPLACEMENTS,
    MAX_COUNTED_BLOCKS,
    NO_BOILERPLATE,
    Boilerplate,
    learn_page,
    parse_page,
)
from crawler.core.change.difference import NO_DIFFERENCE
from crawler.core.change.mask import NO_MASK
from crawler.core.change.mask_learning import Observation, learn_first_visit, update_mask
from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.shared_lines import SharedLines
from tests.core.pages import Domain

AT = datetime(2026, 1, 1, tzinfo=UTC)
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


def test_menu_edit_on_all_pages_is_no_page_change_after_three_pages() -> None:
    domain = known_domain()

    found = [
        bool(domain.visit(shown(n), shown(n, menu="Home Docs Shop"), shown(n, menu="Home Docs Shop"), path=str(n)))
        for n in range(5)
    ]

    assert found == [True, True, False, False, False]


def test_old_menu_is_no_change_even_after_many_other_blocks() -> None:
    domain = known_domain()
    for n in range(4):
        domain.visit(shown(n), shown(n, menu="Home Shop"), path=str(n))
    for n in range(60):  # each line is on three of many pages; later, on one
        first = 160 * (n % 12 if n < 36 else n)
        words = "".join(f"<p>line {first + m}" for m in range(160))
        domain.first(shown(0, menu="Home Shop", own=words), path=f"long/{n}")
    assert len(domain.mask.boilerplate.counts) == MAX_COUNTED_BLOCKS

    assert not domain.visit(shown(4), shown(4, menu="Home Shop"), path="4")


def test_page_change_is_reported_while_boilerplate_changes() -> None:
    domain = known_domain()
    for n in range(4):
        domain.visit(shown(n), shown(n, menu="Home Shop"), path=str(n))

    left = domain.visit(shown(4), shown(4, menu="Home Shop", own="it ends here"), path="4")

    assert [(one.text, other.text) for one, other in left.replaced] == [("fifth", "it ends here")]


def test_different_text_on_one_of_many_pages_is_a_change() -> None:
    domain = Domain()
    for n in range(10):
        domain.first(f"<h1>Item {n}</h1><p class=stock>in stock</p>", path=str(n))

    for n in (7, 8):
        left = domain.visit(
            f"<h1>Item {n}</h1><p class=stock>in stock</p>",
            f"<h1>Item {n}</h1><p class=stock>sold out</p>",
            path=str(n),
        )
        assert [(one.text, other.text) for one, other in left.replaced] == [("in stock", "sold out")]


def test_equal_text_on_two_pages_is_not_boilerplate() -> None:
    boilerplate = learn_page(learn_page(NO_BOILERPLATE, met(1), [(1, 10)]), met(2), [(1, 10)])

    assert not boilerplate.contains(10)
    assert learn_page(boilerplate, met(3), [(1, 10)]).contains(10)


def test_shared_lines_are_the_texts_of_boilerplate() -> None:
    boilerplate = NO_BOILERPLATE
    for n in range(3):
        boilerplate = learn_page(boilerplate, met(n), [(1, 10), (1, 11), (2, 20 + n)], {10: 99, 20 + n: 200 + n})

    assert boilerplate.list_shared_lines() == SharedLines.build({99}, pages=3)  # 11 is no text


def test_one_page_visited_often_is_not_boilerplate() -> None:
    boilerplate = NO_BOILERPLATE
    for _ in range(10):
        boilerplate = learn_page(boilerplate, met(1), [(1, 10)])

    assert not boilerplate.contains(10)


def test_block_missing_on_the_last_pages_is_dropped_boilerplate() -> None:
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


def test_page_without_the_path_does_not_affect_boilerplate() -> None:
    boilerplate = NO_BOILERPLATE
    for n in range(3):
        boilerplate = learn_page(boilerplate, met(n), [(1, 10)])
    for n in range(3, 30):
        boilerplate = learn_page(boilerplate, met(n), [(2, 1000 + n)])

    assert boilerplate.contains(10)


def test_path_with_three_boilerplate_texts_has_rotating_text() -> None:
    domain = known_domain()
    said = ["All rights kept", "Fair all week", "Expect some rain", "Storm from the west"]
    for before, after in pairwise(said):
        for n in range(5):
            domain.visit(shown(n, foot=before), shown(n, foot=after), path=str(n))

    found = [domain.visit(shown(n, foot=said[-1]), shown(n, foot="Snow"), path=str(n)) for n in (0, 1, 0)]

    assert [bool(left) for left in found] == [True, False, False]
    assert domain.visit(shown(0), shown(0, own="Snow"), path="0")


def test_text_on_one_page_at_a_rotating_path_is_its_change() -> None:
    rows = "<h1>{name}</h1><table><tr><td>{stock}<tr><td>Sold by us</table>"
    domain = Domain()
    for stock in ("In stock", "In stock now", "Available now", "Available"):
        for n in range(10):
            domain.first(rows.format(name=OWN[n % 5], stock=stock), path=str(n))

    available = rows.format(name=OWN[4], stock="Available")
    for stock in ("Sold out", "Recalled: do not use"):
        left = domain.visit(available, available.replace("Available", stock), path="4")
        assert [(one.text, other.text) for one, other in left.replaced] == [("Available", stock)]

    domain.first(available, path="9")
    left = domain.visit(available, available.replace("<tr><td>Available", ""), path="4")
    assert [(was and was.text, now) for was, now in left.sides] == [("Available", None)]


def test_restyled_site_with_other_classes_has_no_changes() -> None:
    domain = known_domain()
    restyled = shown(0).replace("class=menu", "class='top bar'").replace("<main>", "<main class=wide>")

    assert domain.visit(shown(0), restyled, path="0") == NO_DIFFERENCE


def test_alternating_block_is_no_longer_boilerplate() -> None:
    boilerplate = NO_BOILERPLATE
    for n, form in enumerate((10, 10, 10, 11, 10, 12, 10)):
        boilerplate = learn_page(boilerplate, met(n), [(1, form)])

    assert not boilerplate.was_boilerplate(10)


def test_blocks_side_by_side_do_not_count_as_replacements() -> None:
    boilerplate = NO_BOILERPLATE
    for n in range(5):
        boilerplate = learn_page(boilerplate, met(n), [(1, 10), (1, 11), (1, 12), (1, 13)])

    assert boilerplate.contains(13)
    assert not boilerplate.is_rotating_text(13)


def test_entries_added_together_after_a_removal_count_as_one_replacement() -> None:
    boilerplate = NO_BOILERPLATE
    for menu in ((10, 11, 12), (10, 11), (10, 11, 13, 14, 15)):
        for n in range(5):
            boilerplate = learn_page(boilerplate, met(n), [(1, form) for form in menu])

    assert boilerplate.has_dropped(12)
    assert boilerplate.contains(15)
    assert not boilerplate.is_rotating_text(13)


def test_counts_are_bounded_and_boilerplate_is_kept() -> None:
    boilerplate = Boilerplate()
    for n in range(3):
        boilerplate = learn_page(boilerplate, met(n), [(1, 10)])
    for n in range(30):
        pieces = [(1, 10), *((2 + 200 * n + k, 10_000 + 200 * n + k) for k in range(200))]
        boilerplate = learn_page(boilerplate, met(n), pieces)

    assert len(boilerplate.counts) == MAX_COUNTED_BLOCKS
    assert len(boilerplate.visits_by_path) <= MAX_COUNTED_BLOCKS
    assert boilerplate.contains(10)


def test_replacements_are_dropped_with_their_paths() -> None:
    boilerplate = Boilerplate()
    for batch in range(5):
        for n in range(3):
            boilerplate = learn_page(boilerplate, met(n), [(5000 * batch + k, 5000 * batch + k) for k in range(1500)])

    assert len(boilerplate.replacements) <= MAX_COUNTED_BLOCKS


def test_huge_pages_do_not_push_out_or_rotate_boilerplate() -> None:
    menu, foot = [(1, 10), (2, 11)], [(3, 12)]
    boilerplate = NO_BOILERPLATE
    for n in range(40):
        own = [(100 + piece % 50, 1000 + 5000 * n + piece) for piece in range(5000 if n % 4 == 3 else 20)]
        boilerplate = learn_page(boilerplate, met(n), [*menu, *own, *foot])

    assert all(boilerplate.contains(form) for form in (10, 11, 12))
    assert max(boilerplate.replacements.values()) < ENOUGH_REPLACEMENTS
    assert len(boilerplate.counts) <= MAX_COUNTED_BLOCKS


def test_forms_of_a_first_visit_teach_what_its_blocks_teach() -> None:
    by_blocks = by_forms = NO_MASK
    for n in range(4):
        url = Url(f"http://a.test/{n}")
        body = f"<nav><a href=/>Home</a></nav><p>Page {n} says what no other page says<footer>Made in May".encode()
        read = partial(parse_page, body, url=url, content_type="text/html", with_blocks=True)
        by_blocks = update_mask(by_blocks, Observation(compute_page_key(url), read().blocks, AT, url=url))
        forms = read(with_forms=True)
        assert forms.forms is not None
        assert not forms.blocks
        by_forms = learn_first_visit(by_forms, url, forms.forms)

    assert by_forms == by_blocks
    assert by_forms.boilerplate.list_shared_lines().hashes == {hash_text("Home"), hash_text("Made in May")}
