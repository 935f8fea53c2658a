"""Site edits, which are reported once for all pages."""

from datetime import timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace

from crawler.core.change.edits import MAX_CANDIDATES, BoilerplateEdit, pop_due_edit
from crawler.core.change.mask import NO_MASK
from tests.core.change.test_boilerplate import known_domain, shown
from tests.core.pages import DAY, Domain

Texts = list[tuple[str | None, str | None]]


def report_edit(domain: Domain) -> tuple[Texts, int] | None:
    """Return the site edit to report now: old and new texts, and the number of pages."""
    edit, edits = pop_due_edit(domain.mask.edits, at=domain.now)
    domain.mask = replace(domain.mask, edits=edits)
    return None if edit is None else (texts(edit), edit.pages)


def texts(edit: BoilerplateEdit) -> Texts:
    return [(was.text if was else None, now.text if now else None) for was, now in edit.blocks]


def edited(domain: Domain, *pages: int, before: str = "", after: str) -> None:
    """Visit pages whose menu changed since the last visit."""
    for n in pages:
        domain.visit(shown(n, menu=before or "Home Docs"), shown(n, menu=after), path=str(n))


def test_menu_edit_on_all_pages_is_one_edit_with_old_and_new_text() -> None:
    domain = known_domain()
    edited(domain, *range(5), after="Home Docs Shop")

    assert report_edit(domain) == ([("Home Docs", "Home Docs Shop")], 5)
    assert report_edit(domain) is None


def test_added_and_removed_entries_are_one_edit() -> None:
    domain = Domain()
    menus = [
        "".join(f"<li>{entry}" for entry in entries.split()) for entries in ("Home Docs Old", "Home Docs Shop New")
    ]
    for n in range(4):
        domain.first(shown(n, menu=menus[0]), path=str(n))
    for n in range(4):
        domain.visit(shown(n, menu=menus[0]), shown(n, menu=menus[1]), path=str(n))

    assert report_edit(domain) == ([("Old", "Shop"), (None, "New")], 4)


def test_edit_is_reported_from_the_third_page_on_with_all_three() -> None:
    domain = known_domain()
    edited(domain, 0, 1, after="Home Shop")
    assert report_edit(domain) is None

    edited(domain, 2, after="Home Shop")

    assert report_edit(domain) == ([("Home Docs", "Home Shop")], 3)


def test_pages_visited_later_do_not_repeat_the_report() -> None:
    domain = known_domain()
    edited(domain, 0, 1, 2, after="Home Shop")
    assert report_edit(domain) is not None

    edited(domain, 3, 4, 0, 1, 2, 3, after="Home Shop")

    assert report_edit(domain) is None


def test_reverted_edit_is_another_edit() -> None:
    domain = known_domain()
    edited(domain, 0, 1, 2, 3, after="Home Shop")
    assert report_edit(domain) is not None

    edited(domain, 0, 1, 2, 3, before="Home Shop", after="Home Docs")

    assert report_edit(domain) == ([("Home Shop", "Home Docs")], 4)


def test_changes_of_many_single_pages_are_no_site_edit() -> None:
    domain = known_domain()
    for n in range(5):
        domain.visit(shown(n), shown(n, own=f"another text on page {n}"), path=str(n))

    assert report_edit(domain) is None


def test_page_that_gains_existing_boilerplate_is_no_site_edit() -> None:
    domain = known_domain()
    for n in range(3):
        bare = f"<main><p>bare page {n}</p></main>"
        domain.first(bare, path=f"bare{n}")
        domain.visit(bare, shown(n, own=f"bare page {n}"), path=f"bare{n}")

    assert report_edit(domain) is None


def test_masthead_with_the_date_is_no_site_edit() -> None:
    domain = Domain()
    for n in range(5):
        domain.first(shown(n, foot="3 March 2026"), path=str(n))
    for n in range(5):
        domain.visit(shown(n, foot="3 March 2026"), shown(n, foot="4 March 2026"), path=str(n))

    assert report_edit(domain) is None


@pytest.mark.parametrize("stood", [timedelta(days=5), timedelta(days=20), timedelta(days=40)])
def test_new_number_on_all_pages_is_a_site_edit_at_any_interval(stood: timedelta) -> None:
    domain = Domain()
    for n in range(4):
        domain.first(shown(n, foot="Shipping 4.99"), path=str(n))
    for n in range(4):
        domain.visit(shown(n, foot="Shipping 4.99"), shown(n, foot="Shipping 49.99"), path=str(n), later=stood)

    assert report_edit(domain) == ([("Shipping 4.99", "Shipping 49.99")], 4)
    assert report_edit(domain) is None


def test_date_in_an_unknown_format_is_reported_three_times_at_most() -> None:
    domain = Domain()
    found = []
    for n in range(4):
        domain.first(shown(n, foot="day 2026-03-0"), path=str(n))
    for day in range(1, 60):
        domain.now += DAY
        for n in range(4):  # all keep their first Snapshot
            now = shown(n, foot=f"day 2026-{3 + day // 28}-{day % 28}")
            domain.visit(shown(n, foot="day 2026-03-0"), now, path=str(n), later=day * DAY)
        found.append(report_edit(domain) is not None)

    assert found == [day < 3 for day in range(59)]


def test_banner_that_differs_at_every_visit_is_no_site_edit() -> None:
    domain = known_domain()
    for n in range(5):
        domain.visit(shown(n, foot="Buy boots"), shown(n, foot="Buy hats"), shown(n, foot="Buy coats"), path=str(n))

    assert report_edit(domain) is None


@pytest.mark.parametrize(("gap", "times"), [(DAY, 3), (timedelta(days=40), 7)])
def test_path_with_daily_news_is_muted_and_rarely_edited_path_is_not(gap: timedelta, times: int) -> None:
    domain = known_domain()
    said = ["All rights kept", *(f"Line {word}" for word in ("one", "two", "three", "four", "five", "six", "seven"))]
    found = []
    for before, after in pairwise(said):
        domain.now += gap
        for n in range(4):
            domain.visit(shown(n, foot=before), shown(n, foot=after), path=str(n), later=gap)
        found.append(report_edit(domain))

    assert [each is not None for each in found] == [n < times for n in range(7)]


def test_candidates_are_bounded() -> None:
    domain = known_domain(2)
    for n in range(30):
        pieces = "".join(f"<p>piece {n} {k}</p>" for k in range(100))
        domain.visit(shown(0), shown(0, own=f"x{n}") + pieces, path="0")

    assert len(domain.mask.edits.candidates) == MAX_CANDIDATES
    assert not NO_MASK.edits.candidates
