"""Five pages computed by hand: the table in Nutch's notes, and OPIC's importance for the same visits."""

import numpy as np

from labs.experiments.nutch import rounds, truth

# After each round; "*" was visited, "-" is not known.
TABLE = """
    -  1.0   -     -     -     -
    A  1.0*  0.5   0.5   -     -
    B  1.0*  0.5*  0.5   0.25  0.25
    C  1.0*  0.5*  0.5*  0.25  0.75
    E  1.0*  1.25* 0.5*  0.25  0.75*
    D  1.0*  1.25* 0.5*  0.25* 0.75*
"""


def test_nutch_computes_the_table_of_its_notes() -> None:
    found = []
    for each in rounds(5):
        cells = [f"{each.scores[n]}{'*' * (n in each.read)}" if n in each.scores else "-" for n in "ABCDE"]
        found.append([each.reads or "-", *cells])

    assert found == [line.split() for line in TABLE.strip().splitlines()]


def test_opic_knows_the_same_pages_and_its_mean_stays_1() -> None:
    for each in rounds(40):
        assert each.importance.keys() == each.scores.keys()
        if each.number > 5:
            assert abs(sum(each.importance.values()) / 5 - 1) < 0.05


def test_nutch_grows_without_end_where_opic_comes_near_the_truth() -> None:
    last = list(rounds(100))[-1]
    true = truth()

    assert sum(last.scores.values()) > 10**5
    assert sorted(last.importance, key=last.importance.__getitem__) == sorted(true, key=true.__getitem__)
    assert np.mean([abs(last.importance[name] - true[name]) / true[name] for name in true]) < 0.05


def test_nutch_scores_the_injected_page_above_a_page_with_many_visited_in_links() -> None:
    after_five = list(rounds(5))[-1].scores
    true = truth()

    assert max(true["E"], true["D"], true["C"]) > true["A"] == min(true.values())
    assert after_five["A"] > max(after_five["E"], after_five["D"], after_five["C"])
