"""What some pages share and nearly all do not, such as the menu of one language: an edit of it is no page's own."""

from datetime import timedelta

import pytest

from crawler.core.change.difference import Difference, compute_difference, select_significant
from crawler.core.change.edits import (
    compute_translation_key,
    parse_language,
    pop_due_edit,
)
from crawler.core.change.mask import NO_MASK
from crawler.core.change.observation import (
    MAX_EDIT_GAP,
    MAX_TEMPLATE_EDITS,
    Observation,
    learn_template_edits,
    update_mask,
)
from crawler.core.http.urls import Url, compute_page_key
from tests.core.pages import DAY, NOON, blocks, paragraph

MENUS = {"": "Home News Docs Community", "fr": "Accueil Actus Manuel Forum"}
PAGES = 6  # of each language


class Site:
    """A site in two languages whose pages share all paths; its mask has read each page once."""

    def __init__(self) -> None:
        self.mask, self.now = NO_MASK, NOON
        self.bodies = {url(language, n): page(language, n) for n in range(PAGES) for language in MENUS}
        for at, body in self.bodies.items():
            self.mask = update_mask(
                self.mask, Observation(compute_page_key(at), blocks(body, url=at), self.now, url=at)
            )

    def look(self, at: Url, body: str, *, later: timedelta = DAY) -> Difference:
        """Look at a page again, and keep what it says; what of it is its own change."""
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
def test_an_edit_of_one_languages_menu_is_its_second_pages_no_more(menu: str) -> None:
    site = Site()

    assert site.look(url("fr", 0), page("fr", 0, menu=menu))
    assert not any(site.look(url("fr", n), page("fr", n, menu=menu)) for n in range(1, PAGES))


def test_it_is_reported_once_with_the_pages_it_was_met_on() -> None:
    site = Site()
    menu = f"{MENUS['fr']} Aide"
    site.look(url("fr", 0), page("fr", 0, menu=menu))
    assert pop_due_edit(site.mask.edits, at=site.now)[0] is None

    site.look(url("fr", 1), page("fr", 1, menu=menu))
    edit, _ = pop_due_edit(site.mask.edits, at=site.now)

    assert edit is not None
    assert ([(was, now and now.text) for was, now in edit.blocks], edit.pages) == ([(None, "Aide")], 2)


def test_a_page_with_a_text_of_its_own_beside_the_edit_has_that_as_its_change() -> None:
    site = Site()
    menu = f"{MENUS['fr']} Aide"
    for n in range(2):
        site.look(url("fr", n), page("fr", n, menu=menu))

    found = site.look(url("fr", 2), page("fr", 2, menu=menu, own="<p>another text</p>"))

    assert [(was.text, now.text) for was, now in found.replaced] == [("fr text of 2", "another text")]
    assert len(found.sides) == 1


def test_a_field_that_says_the_same_on_some_pages_is_each_pages_own() -> None:
    site = Site()
    for n in range(PAGES):
        site.look(url("", n), page("", n, own=f"<p>text of {n}</p><b>in stock</b>"))

    assert all(site.look(url("", n), page("", n, own=f"<p>text of {n}</p><b>sold out</b>")) for n in range(2))


def test_entries_of_which_most_stand_on_one_page_are_each_pages_own() -> None:
    site = Site()
    lists = ["".join(f"<dt>{n} {name}</dt>" for name in "abcd") for n in range(PAGES)]
    for n in range(PAGES):
        site.look(url("", n), page("", n, own=lists[n]))

    assert all(site.look(url("", n), page("", n, own=f"{lists[n]}<dt>new</dt>")) for n in range(2))


def test_an_entry_that_stays_on_other_pages_was_no_templates() -> None:
    site = Site()
    menu = "Home News Docs Forum"
    site.look(url("", 0), page("", 0, menu=menu))
    for n in range(2, PAGES):
        site.look(url("", n), page("", n, own="<p>another text</p>"))

    assert site.look(url("", 1), page("", 1, menu=menu))


def test_a_number_that_differs_is_told_of_each_page() -> None:
    site = Site()
    for n in range(2):
        site.look(url("fr", n), page("fr", n, menu=f"{MENUS['fr']} Version-1"))

    assert all(site.look(url("fr", n), page("fr", n, menu=f"{MENUS['fr']} Version-2")) for n in range(2))


def test_one_new_target_of_a_link_on_two_pages_is_the_sites() -> None:
    site = Site()

    found = [bool(site.look(url("", n), page("", n, link="https://other.example/moved"))) for n in range(3)]

    assert found == [True, False, False]


def test_what_is_met_again_after_months_is_counted_anew() -> None:
    site = Site()
    menu = f"{MENUS['fr']} Aide"
    site.look(url("fr", 0), page("fr", 0, menu=menu))

    assert site.look(url("fr", 1), page("fr", 1, menu=menu), later=MAX_EDIT_GAP + 2 * DAY)


def test_translations_of_one_page_are_one_page() -> None:
    site = Site()
    menu = f"{MENUS['']} Help"
    site.look(url("", 0), page("", 0, menu=menu))

    assert site.look(url("fr", 0), page("fr", 0, menu=menu).replace("Accueil", "Home"))


@pytest.mark.parametrize(
    ("one", "language"),
    [("/fr/a.html", "fr"), ("/pt-BR/a.html", "pt-br"), ("/a.html", ""), ("/docs/fr/a.html", ""), ("/fr", "")],
)
def test_the_first_folder_names_the_language(one: str, language: str) -> None:
    assert parse_language(Url(f"https://example.com{one}")) == language


def test_a_page_shares_its_name_with_translations_and_its_index() -> None:
    names = {
        compute_translation_key(Url(f"https://example.com{path}"))
        for path in ("/mod/", "/mod/index.html", "/fr/mod/", "/zh-cn/mod/")
    }

    assert len(names) == 1
    assert compute_translation_key(Url("https://example.com/docs/")) not in names


def test_what_is_known_of_template_edits_is_bounded() -> None:
    mask = NO_MASK
    block = paragraph("new")
    for n in range(MAX_TEMPLATE_EDITS + 10):
        seen = Observation(compute_page_key(url("", n)), (block,), NOON)
        mask = learn_template_edits(mask, [(n, (None, block))], seen, forms=set())

    assert list(mask.template_edits) == list(range(10, MAX_TEMPLATE_EDITS + 10))
