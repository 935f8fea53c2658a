"""Which parameters of links lead nowhere: those that differ within seconds, behind the path where they do."""

from crawler.core.change.difference import NO_DIFFERENCE
from crawler.core.noise.session_params import (
    ENOUGH_VOLATILE_PATHS,
    MAX_PARAMETERS,
    MAX_PATHS_PER_NAME,
    LinkParameters,
    learn_parameters,
)
from crawler.core.noise.stability import STEADY
from crawler.core.page.outline import BlockKind
from tests.core.pages import Domain


def test_a_session_parameter_is_no_word_of_a_link_and_the_others_are() -> None:
    page = "<p><a href='/a?id=7&sid={}'>a</a><a href='/b?sid={}'>b</a>"
    domain = Domain()
    domain.look(*(page.format(sid, sid) for sid in ("w1", "x1", "y2", "z3")))

    assert domain.look(page.format("z3", "z3"), page.format("q4", "q4")) == NO_DIFFERENCE
    left = domain.look(page.format("z3", "z3"), page.format("q4", "q4").replace("id=7", "id=8"))
    assert left.kinds == {BlockKind.LINK}


def test_a_parameter_that_one_second_fetch_alone_saw_differ_may_have_been_edited() -> None:
    page = "<p>Read the <a href='/file?id={}'>manual</a>"
    domain = Domain()

    assert domain.look(page.format(7), page.format(7) + "<p>more", page.format(8), page.format(8))
    assert domain.look(page.format(8), page.format(9))


def test_an_advertisements_number_says_nothing_of_the_number_of_a_file() -> None:
    page = "<p><a href='/go?id={}'>Offer</a><p>Read the <a href='/file?id={}'>manual</a>"
    domain = Domain()
    domain.look(*(page.format(n, 17) for n in (1, 2, 3, 4)))

    assert domain.look(page.format(4, 17), page.format(5, 17)) == NO_DIFFERENCE
    assert domain.look(page.format(4, 17), page.format(5, 99))
    other = "<p>Read the <a href='/other?id={}'>manual</a>"  # which no pair has shown
    assert domain.look(other.format(1), other.format(2), path="b")


def test_a_parameter_that_differs_behind_several_paths_and_stands_still_behind_none_is_one_of_all_links() -> None:
    paths = "".join(f"<a href='/{n}?sid=NOW'>{n}</a>" for n in range(ENOUGH_VOLATILE_PATHS))
    still = "<a href='/still?sid=7'>s</a>"
    for beside, is_known in (("", True), (still, False)):
        domain = Domain()
        domain.look(*((paths + beside).replace("NOW", sid) for sid in ("a1", "b2", "c3", "d4")))

        left = domain.look("<a href='/new?sid=4'>n</a>", "<a href='/new?sid=5'>n</a>", path="b")
        assert (left == NO_DIFFERENCE) is is_known


def test_a_parameter_that_stands_still_in_many_second_fetches_in_a_row_is_a_word_again() -> None:
    page = "<p><a href='/file?id={}'>manual</a><p>{}"
    domain = Domain()
    domain.look(*(page.format(n, "") for n in (1, 2, 3, 4)))
    assert domain.look(page.format(4, ""), page.format(5, "")) == NO_DIFFERENCE

    for n in range(STEADY * 3):
        domain.look(page.format(5, n), page.format(5, n + 1), page.format(5, n + 1))
    assert domain.look(page.format(5, ""), page.format(6, ""))


def test_parameters_that_are_named_anew_each_time_are_bounded() -> None:
    known: LinkParameters = {}
    for n in range(MAX_PARAMETERS + 50):
        known = learn_parameters(known, {(f"k{n}", 1): True})
    for n in range(MAX_PATHS_PER_NAME + 50):
        known = learn_parameters(known, {("sid", 2 * n): True, ("sid", 2 * n + 1): False})

    assert len(known) == MAX_PARAMETERS
    assert len(known["sid"].volatile_paths) == len(known["sid"].steady_paths) == MAX_PATHS_PER_NAME


def test_a_session_is_known_on_pages_of_many_links_that_were_met_in_one_second_fetch_alone() -> None:
    known: LinkParameters = {}
    for _ in range(2):
        known = learn_parameters(known, {("sid", path): True for path in range(MAX_PATHS_PER_NAME)})
    known = learn_parameters(known, {("sid", path): True for path in range(100, 200)})

    assert known["sid"].is_volatile(1000)
