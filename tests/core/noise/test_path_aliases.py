"""Path aliases: what was learned about blocks survives new class names."""

from datetime import timedelta

from crawler.core.change.difference import NO_DIFFERENCE
from crawler.core.noise.alignment import MAX_ALIASES, learn_aliases, replace_paths
from crawler.core.page.block import Block
from tests.core.pages import Domain, blocks

PAGE = (
    "<body class={v}wrap><div class={v}top>Example site</div><div class={v}clock>Seen by {seen} readers</div>"
    "<div class={v}main><p>{own}</p><p class={v}price>{price}</p></div><div class={v}foot>All rights kept</div>"
)


def shown(*, seen: int, v: str = "", own: str = "What the page says", price: str = "19.99") -> str:
    return PAGE.format(v=v, seen=seen, own=own, price=price)


def known_domain() -> Domain:
    domain = Domain()
    domain.visit(shown(seen=5), shown(seen=71), shown(seen=34), shown(seen=60))
    return domain


def test_counter_stays_masked_after_all_classes_change() -> None:
    domain = known_domain()

    assert domain.visit(shown(seen=71), shown(seen=8, v="new-")) == NO_DIFFERENCE
    assert domain.visit(shown(seen=8, v="new-"), shown(seen=12, v="new-")) == NO_DIFFERENCE
    assert domain.visit(shown(seen=12, v="new-"), shown(seen=55, v="newer-")) == NO_DIFFERENCE


def test_change_of_a_restyled_page_is_reported() -> None:
    left = known_domain().visit(shown(seen=71), shown(seen=8, v="new-", price="18.99"))

    assert [(one.text, other.text) for one, other in left.replaced] == [("19.99", "18.99")]


def test_other_text_in_other_elements_is_not_a_restyled_page() -> None:
    before = blocks("<div class=a><p>one</p><p class=x>two</p></div>")
    after = blocks("<div class=b><p>other</p><p class=y>words</p></div>")

    assert learn_aliases({}, before, after, known_paths=()) == {}


def test_one_new_class_among_many_is_a_new_path() -> None:
    before, after = blocks(shown(seen=5)), blocks(shown(seen=5).replace("class=price", "class=sale"))

    assert learn_aliases({}, before, after, known_paths=()) == {}


def test_known_path_does_not_become_an_alias() -> None:
    before, after = blocks(shown(seen=5)), blocks(shown(seen=5, v="new-"))
    met = {block.css_path for block in after if block.text == "19.99"}

    names = learn_aliases({}, before, after, known_paths=met)

    assert met
    assert not met & names.keys()
    kept = {
        block.text for block in replace_paths(after, names) if block.css_path in {block.css_path for block in before}
    }
    assert kept == {block.text for block in after} - {"19.99"}


def test_aliases_are_bounded_and_the_oldest_are_dropped() -> None:
    many = MAX_ALIASES // 8 + 2
    names = learn_aliases({}, (), (), known_paths=())
    for at in range(9):
        before = tuple(Block(-n, f"text {n}") for n in range(1, many))
        after = tuple(Block(at * many + n, f"text {n}") for n in range(1, many))
        names = learn_aliases(names, before, after, known_paths=())

    assert len(names) == MAX_ALIASES
    assert 1 not in names


def test_later_visit_uses_learned_aliases() -> None:
    domain = known_domain()
    domain.visit(shown(seen=71), shown(seen=8, v="new-"))

    found = domain.visit(shown(seen=71), shown(seen=9, v="new-", own="Other words"), later=timedelta(days=90))

    assert [(one.text, other.text) for one, other in found.replaced] == [("What the page says", "Other words")]
