"""What a site does to all its pages at once, and that it is told once."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from crawler.core.change.edits import MAX_CANDIDATES, BoilerplateEdit, pop_due_edit
from crawler.core.change.mask import NO_MASK
from tests.core.change.test_boilerplate import known_domain, shown
from tests.core.pages import DAY, Domain

Texts = list[tuple[str | None, str | None]]


def told(domain: Domain) -> tuple[Texts, int] | None:
    """What a record would tell of the site now: was and now, and on how many pages."""
    edit, edits = pop_due_edit(domain.mask.edits, at=domain.now)
    domain.mask = replace(domain.mask, edits=edits)
    return None if edit is None else (texts(edit), edit.pages)


def texts(edit: BoilerplateEdit) -> Texts:
    return [(was.text if was else None, now.text if now else None) for was, now in edit.blocks]


def edited(domain: Domain, *pages: int, before: str = "", after: str) -> None:
    """These pages have another menu than at the last look."""
    for n in pages:
        domain.look(shown(n, menu=before or "Home Docs"), shown(n, menu=after), path=str(n))


def test_a_menu_that_was_edited_on_all_pages_is_one_edit_with_what_it_was() -> None:
    domain = known_domain()
    edited(domain, *range(5), after="Home Docs Shop")

    assert told(domain) == ([("Home Docs", "Home Docs Shop")], 5)
    assert told(domain) is None


def test_an_entry_that_came_beside_others_and_one_that_went_are_one_edit() -> None:
    domain = Domain()
    menus = [
        "".join(f"<li>{entry}" for entry in entries.split()) for entries in ("Home Docs Old", "Home Docs Shop New")
    ]
    for n in range(4):
        domain.first(shown(n, menu=menus[0]), path=str(n))
    for n in range(4):
        domain.look(shown(n, menu=menus[0]), shown(n, menu=menus[1]), path=str(n))

    assert told(domain) == ([("Old", "Shop"), (None, "New")], 4)


def test_two_pages_are_not_the_site_and_the_third_tells_of_all_three() -> None:
    domain = known_domain()
    edited(domain, 0, 1, after="Home Shop")
    assert told(domain) is None

    edited(domain, 2, after="Home Shop")

    assert told(domain) == ([("Home Docs", "Home Shop")], 3)


def test_pages_that_are_looked_at_later_do_not_tell_it_again() -> None:
    domain = known_domain()
    edited(domain, 0, 1, 2, after="Home Shop")
    assert told(domain) is not None

    edited(domain, 3, 4, 0, 1, 2, 3, after="Home Shop")

    assert told(domain) is None


def test_what_goes_back_to_what_it_was_is_another_edit() -> None:
    domain = known_domain()
    edited(domain, 0, 1, 2, 3, after="Home Shop")
    assert told(domain) is not None

    edited(domain, 0, 1, 2, 3, before="Home Shop", after="Home Docs")

    assert told(domain) == ([("Home Shop", "Home Docs")], 4)


def test_news_of_single_pages_is_no_edit_of_the_site_however_many_have_some() -> None:
    domain = known_domain()
    for n in range(5):
        domain.look(shown(n), shown(n, own=f"another text on page {n}"), path=str(n))

    assert told(domain) is None


def test_a_page_that_gets_what_all_the_others_have_is_no_edit_of_the_site() -> None:
    domain = known_domain()
    for n in range(3):
        bare = f"<main><p>bare page {n}</p></main>"
        domain.first(bare, path=f"bare{n}")
        domain.look(bare, shown(n, own=f"bare page {n}"), path=f"bare{n}")

    assert told(domain) is None


def test_a_masthead_that_tells_the_day_is_no_edit_of_the_site() -> None:
    domain = Domain()
    for n in range(5):
        domain.first(shown(n, foot="3 March 2026"), path=str(n))
    for n in range(5):
        domain.look(shown(n, foot="3 March 2026"), shown(n, foot="4 March 2026"), path=str(n))

    assert told(domain) is None


@pytest.mark.parametrize("stood", [timedelta(days=5), timedelta(days=20), timedelta(days=40)])
def test_another_number_on_all_pages_is_an_edit_of_the_site_however_short_one_had_stood(stood: timedelta) -> None:
    domain = Domain()
    for n in range(4):
        domain.first(shown(n, foot="Shipping 4.99"), path=str(n))
    for n in range(4):
        domain.look(shown(n, foot="Shipping 4.99"), shown(n, foot="Shipping 49.99"), path=str(n), later=stood)

    assert told(domain) == ([("Shipping 4.99", "Shipping 49.99")], 4)
    assert told(domain) is None


def test_a_date_in_a_form_that_nobody_knows_is_reported_three_times_and_no_more_however_long_it_goes_on() -> None:
    domain = Domain()
    found = []
    for n in range(4):
        domain.first(shown(n, foot="day 2026-03-0"), path=str(n))
    for day in range(1, 60):
        domain.now += DAY
        for n in range(4):  # which keep the Snapshot that they had first
            now = shown(n, foot=f"day 2026-{3 + day // 28}-{day % 28}")
            domain.look(shown(n, foot="day 2026-03-0"), now, path=str(n), later=day * DAY)
        found.append(told(domain) is not None)

    assert found == [day < 3 for day in range(59)]


def test_a_banner_that_differs_from_look_to_look_is_no_edit_of_the_site() -> None:
    domain = known_domain()
    for n in range(5):
        domain.look(shown(n, foot="Buy boots"), shown(n, foot="Buy hats"), shown(n, foot="Buy coats"), path=str(n))

    assert told(domain) is None


@pytest.mark.parametrize(("gap", "times"), [(DAY, 3), (timedelta(days=40), 7)])
def test_a_path_for_news_of_the_day_is_reported_three_times_and_one_that_is_edited_now_and_then_always(
    gap: timedelta, times: int
) -> None:
    domain = known_domain()
    said = ["All rights kept", *(f"Line {word}" for word in ("one", "two", "three", "four", "five", "six", "seven"))]
    found = []
    for before, after in pairwise(said):
        domain.now += gap
        for n in range(4):
            domain.look(shown(n, foot=before), shown(n, foot=after), path=str(n), later=gap)
        found.append(told(domain))

    assert [each is not None for each in found] == [n < times for n in range(7)]


def test_what_is_known_of_blocks_that_came_is_bounded() -> None:
    domain = known_domain(2)
    for n in range(30):
        pieces = "".join(f"<p>piece {n} {k}</p>" for k in range(100))
        domain.look(shown(0), shown(0, own=f"x{n}") + pieces, path="0")

    assert len(domain.mask.edits.candidates) == MAX_CANDIDATES
    assert not NO_MASK.edits.candidates
