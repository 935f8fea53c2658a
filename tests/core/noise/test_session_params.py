"""Volatile link parameters: those that differ within seconds at a path."""

from crawler.core.change.difference import NO_DIFFERENCE
from crawler.core.noise.session_params import (
    ENOUGH_VOLATILE_PATHS,
    MAX_PARAMETERS,
    MAX_PATHS_PER_NAME,
    LinkParameters,
    learn_parameters,
)
from crawler.core.noise.stability import STEADY
from crawler.core.page.block import BlockKind
from tests.core.pages import Domain


def test_session_parameter_is_dropped_and_others_are_kept() -> None:
    page = "<p><a href='/a?id=7&sid={}'>a</a><a href='/b?sid={}'>b</a>"
    domain = Domain()
    domain.visit(*(page.format(sid, sid) for sid in ("w1", "x1", "y2", "z3")))

    assert domain.visit(page.format("z3", "z3"), page.format("q4", "q4")) == NO_DIFFERENCE
    left = domain.visit(page.format("z3", "z3"), page.format("q4", "q4").replace("id=7", "id=8"))
    assert left.kinds == {BlockKind.LINK}


def test_parameter_that_differed_in_one_second_fetch_is_not_volatile() -> None:
    page = "<p>Read the <a href='/file?id={}'>manual</a>"
    domain = Domain()

    assert domain.visit(page.format(7), page.format(7) + "<p>more", page.format(8), page.format(8))
    assert domain.visit(page.format(8), page.format(9))


def test_volatile_parameter_at_one_path_is_kept_at_another() -> None:
    page = "<p><a href='/go?id={}'>Offer</a><p>Read the <a href='/file?id={}'>manual</a>"
    domain = Domain()
    domain.visit(*(page.format(n, 17) for n in (1, 2, 3, 4)))

    assert domain.visit(page.format(4, 17), page.format(5, 17)) == NO_DIFFERENCE
    assert domain.visit(page.format(4, 17), page.format(5, 99))
    other = "<p>Read the <a href='/other?id={}'>manual</a>"  # not seen in a second fetch
    assert domain.visit(other.format(1), other.format(2), path="b")


def test_parameter_volatile_at_several_paths_is_volatile_everywhere() -> None:
    paths = "".join(f"<a href='/{n}?sid=NOW'>{n}</a>" for n in range(ENOUGH_VOLATILE_PATHS))
    still = "<a href='/still?sid=7'>s</a>"
    for beside, is_known in (("", True), (still, False)):
        domain = Domain()
        domain.visit(*((paths + beside).replace("NOW", sid) for sid in ("a1", "b2", "c3", "d4")))

        left = domain.visit("<a href='/new?sid=4'>n</a>", "<a href='/new?sid=5'>n</a>", path="b")
        assert (left == NO_DIFFERENCE) is is_known


def test_parameter_is_compared_again_after_many_steady_second_fetches() -> None:
    page = "<p><a href='/file?id={}'>manual</a><p>{}"
    domain = Domain()
    domain.visit(*(page.format(n, "") for n in (1, 2, 3, 4)))
    assert domain.visit(page.format(4, ""), page.format(5, "")) == NO_DIFFERENCE

    for n in range(STEADY * 3):
        domain.visit(page.format(5, n), page.format(5, n + 1), page.format(5, n + 1))
    assert domain.visit(page.format(5, ""), page.format(6, ""))


def test_parameters_with_random_names_are_bounded() -> None:
    known: LinkParameters = {}
    for n in range(MAX_PARAMETERS + 50):
        known = learn_parameters(known, {(f"k{n}", 1): True})
    for n in range(MAX_PATHS_PER_NAME + 50):
        known = learn_parameters(known, {("sid", 2 * n): True, ("sid", 2 * n + 1): False})

    assert len(known) == MAX_PARAMETERS
    assert len(known["sid"].volatile_paths) == len(known["sid"].steady_paths) == MAX_PATHS_PER_NAME


def test_session_is_recognized_on_unseen_pages_with_many_links() -> None:
    known: LinkParameters = {}
    for _ in range(2):
        known = learn_parameters(known, {("sid", path): True for path in range(MAX_PATHS_PER_NAME)})
    known = learn_parameters(known, {("sid", path): True for path in range(100, 200)})

    assert known["sid"].is_volatile(1000)
