"""Template edits: edits of blocks that only some pages share, such as the menu of one language."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from crawler.core.change.difference import Difference, compute_difference, select_significant
from crawler.core.change.edits import (
    compute_translation_key,
    parse_language,
    pop_due_edit,
)
from crawler.core.change.mask import NO_MASK
from crawler.core.change.mask_learning import (
    MAX_EDIT_GAP,
    MAX_TEMPLATE_EDITS,
    Observation,
    learn_template_edits,
    update_mask,
)
from crawler.core.http.urls import Url, compute_page_key
from tests.core.pages import DAY, NOON, blocks, paragraph

MENUS = {"": "Home News Docs Community", "fr": "Accueil Actus Manuel Forum"}
PAGES = 6  # per language


class Site:
    """A site in two languages whose pages share all paths, with a mask after one visit of each page."""

    def __init__(self, edit: Callable[[str], str] = str) -> None:
        self.mask, self.now = NO_MASK, NOON
        self.bodies = {url(language, n): edit(page(language, n)) for n in range(PAGES) for language in MENUS}
        for at, body in self.bodies.items():
            self.mask = update_mask(
                self.mask, Observation(compute_page_key(at), blocks(body, url=at), self.now, url=at)
            )

    def visit(self, at: Url, body: str, *, later: timedelta = DAY) -> Difference:
        """Visit a page again, store its text, and return its significant difference."""
        old, new, then = blocks(self.bodies[at], url=at), blocks(body, url=at), self.now
        self.now += later
        self.mask = update_mask(self.mask, Observation(compute_page_key(at), new, self.now, old, then, url=at))
        self.bodies[at] = body
        return select_significant(compute_difference(old, new, self.mask.volatile), self.mask, then=then, now=self.now)


def url(language: str, n: int) -> Url:
    return Url(f"https://example.com/{language and language + '/'}{n}.html")


def page(language: str, n: int, *, menu: str = "", own: str = "", link: str = "https://other.example/1") -> str:
    entries = "".join(f"<li>{entry}</li>" for entry in (menu or MENUS[language]).split())
    fields = own or f"<p>{language} text of {n}</p>"
    return f"<ul class=menu>{entries}</ul><h1>Page {language} {n}</h1>{fields}<p><a href={link}>more of {n}</a></p>"


@pytest.mark.parametrize(
    "menu", ["Accueil Actus Manuel Forum Aide", "Accueil Actus Manuel", "Accueil Infos Manuel Forum"]
)
def test_menu_edit_of_one_language_is_no_change_from_its_second_page_on(menu: str) -> None:
    site = Site()

    assert site.visit(url("fr", 0), page("fr", 0, menu=menu))
    assert not any(site.visit(url("fr", n), page("fr", n, menu=menu)) for n in range(1, PAGES))


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "https://example.com/7"], ids=["address", "id"])
def test_number_in_the_target_of_a_menu_entry_is_no_value(origin: str) -> None:
    def with_links(body: str) -> str:
        return re.sub(r"<li>(\w+)</li>", rf"<li><a href={origin}/\1>\1</a></li>", body)

    site = Site(with_links)
    menu = f"{MENUS['fr']} Aide"

    assert site.visit(url("fr", 0), with_links(page("fr", 0, menu=menu)))
    assert not any(site.visit(url("fr", n), with_links(page("fr", n, menu=menu))) for n in range(1, PAGES))


def test_template_edit_is_reported_once_with_its_pages() -> None:
    site = Site()
    menu = f"{MENUS['fr']} Aide"
    site.visit(url("fr", 0), page("fr", 0, menu=menu))
    assert pop_due_edit(site.mask.edits, at=site.now)[0] is None

    site.visit(url("fr", 1), page("fr", 1, menu=menu))
    edit, _ = pop_due_edit(site.mask.edits, at=site.now)

    assert edit is not None
    assert ([(was, now and now.text) for was, now in edit.blocks], edit.pages) == ([(None, "Aide")], 2)


def test_own_text_beside_a_template_edit_is_a_change() -> None:
    site = Site()
    menu = f"{MENUS['fr']} Aide"
    for n in range(2):
        site.visit(url("fr", n), page("fr", n, menu=menu))

    found = site.visit(url("fr", 2), page("fr", 2, menu=menu, own="<p>another text</p>"))

    assert [(was.text, now.text) for was, now in found.replaced] == [("fr text of 2", "another text")]
    assert len(found.sides) == 1


def test_field_with_equal_values_on_some_pages_is_each_pages_own() -> None:
    site = Site()
    for n in range(PAGES):
        site.visit(url("", n), page("", n, own=f"<p>text of {n}</p><b>in stock</b>"))

    assert all(site.visit(url("", n), page("", n, own=f"<p>text of {n}</p><b>sold out</b>")) for n in range(2))


def test_list_entries_that_are_mostly_unique_are_each_pages_own() -> None:
    site = Site()
    lists = ["".join(f"<dt>{n} {name}</dt>" for name in "abcd") for n in range(PAGES)]
    for n in range(PAGES):
        site.visit(url("", n), page("", n, own=lists[n]))

    assert all(site.visit(url("", n), page("", n, own=f"{lists[n]}<dt>new</dt>")) for n in range(2))


def test_entry_that_stays_on_other_pages_is_not_the_templates() -> None:
    site = Site()
    menu = "Home News Docs Forum"
    site.visit(url("", 0), page("", 0, menu=menu))
    for n in range(2, PAGES):
        site.visit(url("", n), page("", n, own="<p>another text</p>"))

    assert site.visit(url("", 1), page("", 1, menu=menu))


def test_changed_number_is_reported_for_each_page() -> None:
    site = Site()
    for n in range(2):
        site.visit(url("fr", n), page("fr", n, menu=f"{MENUS['fr']} Version-1"))

    assert all(site.visit(url("fr", n), page("fr", n, menu=f"{MENUS['fr']} Version-2")) for n in range(2))


def test_same_new_link_target_on_two_pages_is_a_template_edit() -> None:
    site = Site()

    found = [bool(site.visit(url("", n), page("", n, link="https://other.example/moved"))) for n in range(3)]

    assert found == [True, False, False]


def test_counting_starts_again_after_months() -> None:
    site = Site()
    menu = f"{MENUS['fr']} Aide"
    site.visit(url("fr", 0), page("fr", 0, menu=menu))

    assert site.visit(url("fr", 1), page("fr", 1, menu=menu), later=MAX_EDIT_GAP + 2 * DAY)


def test_translations_count_as_one_page() -> None:
    site = Site()
    menu = f"{MENUS['']} Help"
    site.visit(url("", 0), page("", 0, menu=menu))

    assert site.visit(url("fr", 0), page("fr", 0, menu=menu).replace("Accueil", "Home"))


@pytest.mark.parametrize(
    ("one", "language"),
    [("/fr/a.html", "fr"), ("/pt-BR/a.html", "pt-br"), ("/a.html", ""), ("/docs/fr/a.html", ""), ("/fr", "")],
)
def test_first_path_segment_names_the_language(one: str, language: str) -> None:
    assert parse_language(Url(f"https://example.com{one}")) == language


def test_page_shares_its_key_with_translations_and_its_index() -> None:
    names = {
        compute_translation_key(Url(f"https://example.com{path}"))
        for path in ("/mod/", "/mod/index.html", "/fr/mod/", "/zh-cn/mod/")
    }

    assert len(names) == 1
    assert compute_translation_key(Url("https://example.com/docs/")) not in names


def test_template_edits_are_bounded() -> None:
    mask = NO_MASK
    block = paragraph("new")
    for n in range(MAX_TEMPLATE_EDITS + 10):
        seen = Observation(compute_page_key(url("", n)), (block,), NOON)
        mask = learn_template_edits(mask, [(n, (None, block))], seen, forms=set())

    assert list(mask.template_edits) == list(range(10, MAX_TEMPLATE_EDITS + 10))
