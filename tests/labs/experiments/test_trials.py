import pytest

from labs.experiments.graph import power_law
from labs.experiments.opic import SelectionOrder
from labs.experiments.trials import LabRun, Reaction, beside, converge, interpolate, live, offline_curve, react
from labs.experiments.windows import policy_of

GRAPH = power_law(600, seed=1)


@pytest.fixture(scope="module")
def reaction() -> Reaction:
    return react(LabRun(GRAPH, passes=10, seed=1), SelectionOrder.GREEDY, after=32)


def test_curve_has_a_point_per_pass_and_reports_progress() -> None:
    told: list[int] = []

    curve = converge(LabRun(GRAPH, passes=3, seed=1, progress=told.append), SelectionOrder.CYCLE)

    assert [point.visits for point in curve.points] == [1, 2, 3]
    assert told == [600] * 3
    assert curve.points[0].errors.every > curve.points[-1].errors.every


def test_the_offline_curve_counts_a_pass_as_one_visit_of_each_page() -> None:
    curve = offline_curve(GRAPH, passes=5)

    assert [point.visits for point in curve.points] == [1, 2, 3, 4, 5]
    assert curve.points[-1].errors.every < 0.05


@pytest.mark.soak
def test_one_window_after_a_change_about_a_third_of_the_jump_is_left(reaction: Reaction) -> None:
    """Check that interpolation forgets as exp(-t/T): 37 % remain after one window."""
    assert reaction.points[0].errors.every > 3 * reaction.before.every
    assert 0.2 < reaction.left_after(1.0) < 0.5
    assert reaction.left_after(2.0) < 0.2


@pytest.mark.soak
def test_error_recovers(reaction: Reaction) -> None:
    until = reaction.windows_until_back

    assert until is not None
    assert 1.0 < until < 3.5


def test_two_blocks_forget_a_change_within_a_window_and_a_half() -> None:
    found = react(LabRun(GRAPH, passes=10, seed=1, policy=policy_of("blocks:24")), SelectionOrder.GREEDY, after=14)

    assert found.left_after(0.5) > 0.2
    assert found.left_after(1.4) < 0.1


def test_estimates_of_a_changing_graph_are_less_exact() -> None:
    policies = [policy_of("interpolation"), policy_of("variable:4")]

    still, moving = (live(LabRun(GRAPH, passes=6, seed=1), policies, rate=rate) for rate in (0.0, 0.1))

    assert [standing.policy for standing in moving] == ["interpolation", "variable:4"]
    assert all(a.errors.every < b.errors.every for a, b in zip(still, moving, strict=True))
    assert moving[0].numbers == 2.0


def test_greedy_halves_the_error_factor_of_random_and_errs_less() -> None:
    """Check the paper's claim: selection by most cash drives the clock about twice as fast."""
    trial = LabRun(GRAPH, passes=6, seed=1)

    found = beside(converge(trial, SelectionOrder.RANDOM), converge(trial, SelectionOrder.GREEDY))

    assert [each.visits for each in found] == [1, 2, 3, 4, 5, 6]
    assert 1.8 < found[-1].factor < 3.0
    assert all(each.every > 1.5 and each.top > 2.0 for each in found[1:])


def test_share_of_the_virtual_page_can_be_set() -> None:
    errors = [
        converge(LabRun(GRAPH, passes=8, seed=1, virtual_page_share=share), SelectionOrder.GREEDY)
        .points[-1]
        .errors.every
        for share in (0.05, 0.5)
    ]

    assert max(errors) < 0.05


@pytest.mark.soak
def test_interpolation_follows_the_window_closely_at_rest_and_late_after_a_change() -> None:
    found = interpolate(LabRun(GRAPH, passes=1, seed=1), passes=40)

    assert found.changed_at == 20
    assert found.at_rest < 0.05
    assert found.at_rest < found.moments[-1].apart < found.at_worst
    last = found.moments[-1]
    assert found.before < 0.5 * found.after
    assert abs(last.exact - found.after) < 0.1 * found.after  # the whole window is younger than the change
    assert last.interpolated < last.exact  # interpolation still contains cash from before the change
