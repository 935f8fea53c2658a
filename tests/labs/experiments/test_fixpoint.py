from itertools import islice

import numpy as np

from labs.experiments.fixpoint import errors, fixpoint, offline, offline_errors, spearman
from labs.experiments.graph import from_rows, power_law


def test_two_pages_by_hand() -> None:
    """Page 1 has no links: x0 = v, x1 = 0.85 x0 + v with v = (0.15 x0 + x1) / 2, and x0 + x1 = 2."""
    truth = fixpoint(from_rows([[1], []]))

    assert np.allclose(truth, [2 / 2.85, 2 - 2 / 2.85])


def test_the_mean_page_has_importance_1_and_one_more_pass_changes_nothing() -> None:
    graph = power_law(500, seed=1)

    truth = fixpoint(graph)

    assert abs(truth.mean() - 1) < 1e-9
    again = 0.85 * np.bincount(
        graph.targets, weights=(truth / np.maximum(graph.out_degrees, 1))[graph.sources], minlength=500
    )
    assert np.ptp(truth - again) < 1e-9  # the missing cash comes from the virtual page, equally for each


def test_the_offline_iteration_comes_nearer_with_every_pass() -> None:
    graph = power_law(500, seed=1)

    found = [each.every for each in offline_errors(graph, passes=8)]

    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.02
    assert all(abs(cash.mean() - 1) < 1e-9 for cash in islice(offline(graph), 3))


def test_errors_by_hand() -> None:
    truth = np.array([4.0, *[1.0] * 18, 2.0])
    estimate = truth * np.array([1.2, *[1.0] * 18, 0.6])

    found = errors(estimate, truth)

    assert abs(found.every - (0.2 + 0.4) / 20) < 1e-12
    assert abs(found.top - (0.2 + 0.4) / 2) < 1e-12


def test_equal_values_share_their_place() -> None:
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 90.0])) == 1.0
    assert spearman(np.array([3.0, 2.0, 1.0]), np.array([10.0, 20.0, 90.0])) == -1.0
    # places 1, 2.5, 2.5, 4 against 1, 2, 3, 4
    assert abs(spearman(np.array([1.0, 5.0, 5.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0])) - 0.9486833) < 1e-6
    assert spearman(np.array([1.0, 1.0]), np.array([1.0, 2.0])) == 0.0
