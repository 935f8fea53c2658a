import pytest

from crawler.lab.graph import power_law
from crawler.lab.opic import SelectionOrder
from crawler.lab.trials import LabRun, Reaction, converge, live, offline_curve, react
from crawler.lab.windows import policy_of

GRAPH = power_law(600, seed=1)


@pytest.fixture(scope="module")
def reaction() -> Reaction:
    return react(LabRun(GRAPH, passes=10, seed=1), SelectionOrder.GREEDY, after=32)


def test_a_curve_has_a_point_for_each_pass_and_tells_of_its_progress() -> None:
    told: list[int] = []

    curve = converge(LabRun(GRAPH, passes=3, seed=1, progress=told.append), SelectionOrder.CYCLE)

    assert [point.visits for point in curve.points] == [1, 2, 3]
    assert told == [600] * 3
    assert curve.points[0].errors.every > curve.points[-1].errors.every


def test_the_offline_curve_counts_a_pass_as_one_visit_of_each_page() -> None:
    curve = offline_curve(GRAPH, passes=5)

    assert [point.visits for point in curve.points] == [1, 2, 3, 4, 5]
    assert curve.points[-1].errors.every < 0.05


def test_one_window_after_a_change_about_a_third_of_the_jump_is_left(reaction: Reaction) -> None:
    """Interpolation forgets as exp(-t/T): after one window 37 % are remembered."""
    assert reaction.points[0].errors.every > 3 * reaction.before.every
    assert 0.2 < reaction.left_after(1.0) < 0.5
    assert reaction.left_after(2.0) < 0.2


def test_the_error_comes_back(reaction: Reaction) -> None:
    until = reaction.windows_until_back

    assert until is not None
    assert 1.0 < until < 3.5


def test_two_blocks_forget_a_change_within_a_window_and_a_half() -> None:
    found = react(LabRun(GRAPH, passes=10, seed=1, policy=policy_of("blocks:24")), SelectionOrder.GREEDY, after=14)

    assert found.left_after(0.5) > 0.2
    assert found.left_after(1.4) < 0.1


def test_a_graph_that_changes_is_told_less_exactly_than_one_at_rest() -> None:
    policies = [policy_of("interpolation"), policy_of("variable:4")]

    still, moving = (live(LabRun(GRAPH, passes=6, seed=1), policies, rate=rate) for rate in (0.0, 0.1))

    assert [standing.policy for standing in moving] == ["interpolation", "variable:4"]
    assert all(a.errors.every < b.errors.every for a, b in zip(still, moving, strict=True))
    assert moving[0].numbers == 2.0
