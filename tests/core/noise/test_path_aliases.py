"""A site that gives its elements new classes: what was learnt of its blocks stays known."""

from datetime import timedelta

from crawler.core.change.difference import NO_DIFFERENCE
from crawler.core.noise.alignment import MAX_ALIASES, learn_aliases, replace_paths
from crawler.core.page.outline import Block
from tests.core.pages import Domain, blocks

PAGE = (
    "<body class={v}wrap><div class={v}top>Example site</div><div class={v}clock>Seen by {seen} readers</div>"
    "<div class={v}main><p>{own}</p><p class={v}price>{price}</p></div><div class={v}foot>All rights kept</div>"
)


def shown(*, seen: int, v: str = "", own: str = "What the page says", price: str = "19.99") -> str:
    return PAGE.format(v=v, seen=seen, own=own, price=price)


def known_domain() -> Domain:
    domain = Domain()
    domain.look(shown(seen=5), shown(seen=71), shown(seen=34), shown(seen=60))
    return domain


def test_a_counter_is_still_one_when_all_classes_of_the_site_are_new() -> None:
    domain = known_domain()

    assert domain.look(shown(seen=71), shown(seen=8, v="new-")) == NO_DIFFERENCE
    assert domain.look(shown(seen=8, v="new-"), shown(seen=12, v="new-")) == NO_DIFFERENCE
    assert domain.look(shown(seen=12, v="new-"), shown(seen=55, v="newer-")) == NO_DIFFERENCE


def test_news_of_a_page_that_was_restyled_is_reported() -> None:
    left = known_domain().look(shown(seen=71), shown(seen=8, v="new-", price="18.99"))

    assert [(one.text, other.text) for one, other in left.replaced] == [("19.99", "18.99")]


def test_a_page_that_says_something_else_in_other_elements_is_not_restyled() -> None:
    before = blocks("<div class=a><p>one</p><p class=x>two</p></div>")
    after = blocks("<div class=b><p>other</p><p class=y>words</p></div>")

    assert learn_aliases({}, before, after, known_paths=()) == {}


def test_one_class_of_many_that_is_new_is_another_place() -> None:
    before, after = blocks(shown(seen=5)), blocks(shown(seen=5).replace("class=price", "class=sale"))

    assert learn_aliases({}, before, after, known_paths=()) == {}


def test_a_path_that_other_pages_have_is_no_new_name() -> None:
    before, after = blocks(shown(seen=5)), blocks(shown(seen=5, v="new-"))
    met = {block.css_path for block in after if block.text == "19.99"}

    names = learn_aliases({}, before, after, known_paths=met)

    assert met
    assert not met & names.keys()
    kept = {
        block.text for block in replace_paths(after, names) if block.css_path in {block.css_path for block in before}
    }
    assert kept == {block.text for block in after} - {"19.99"}


def test_names_are_bounded_and_the_oldest_are_forgotten() -> None:
    many = MAX_ALIASES // 8 + 2
    names = learn_aliases({}, (), (), known_paths=())
    for at in range(9):
        before = tuple(Block(-n, f"text {n}") for n in range(1, many))
        after = tuple(Block(at * many + n, f"text {n}") for n in range(1, many))
        names = learn_aliases(names, before, after, known_paths=())

    assert len(names) == MAX_ALIASES
    assert 1 not in names


def test_a_look_long_after_finds_the_names_that_were_learnt() -> None:
    domain = known_domain()
    domain.look(shown(seen=71), shown(seen=8, v="new-"))

    found = domain.look(shown(seen=71), shown(seen=9, v="new-", own="Other words"), later=timedelta(days=90))

    assert [(one.text, other.text) for one, other in found.replaced] == [("What the page says", "Other words")]
