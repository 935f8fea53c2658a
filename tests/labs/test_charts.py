import math
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.cli.plot import DOTS, Chart, Series, render_plot
from crawler.format.axes import format_tick, make_axis
from labs.charts import COLOURS, DASHES, svg

numbers = st.floats(1e-6, 1e9)
FALLING = Chart(
    title="Error <of> all & sundry",
    x_label="visits",
    y_label="per cent",
    series=(
        Series("greedy", tuple((float(n), 100 / n) for n in range(1, 11))),
        Series("random", tuple((float(n), 100 / math.sqrt(n)) for n in range(1, 11))),
    ),
)


@example(values=[300000001.0], log=False)
@given(values=st.lists(numbers, min_size=1), log=st.booleans())
def test_an_axis_holds_every_value_and_has_marks_on_it(values: list[float], log: bool) -> None:
    axis = make_axis(values, is_log=log)

    assert all(-0.01 <= axis.normalize(value) <= 1.01 for value in values)
    assert 2 <= len(axis.marks()) <= 16
    assert all(-0.01 <= axis.normalize(mark) <= 1.01 for mark in axis.marks())


@pytest.mark.parametrize("log", [False, True])
def test_an_axis_over_nothing_still_has_two_ends(log: bool) -> None:
    axis = make_axis([], is_log=log)

    assert axis.low < axis.high


def test_marks_are_round_numbers() -> None:
    assert make_axis([3.0, 10.0]).marks() == [0, 2, 4, 6, 8, 10]
    assert make_axis([3.0, 80.0], is_log=True).marks() == [2, 5, 10, 20, 50, 100]
    assert [format_tick(value) for value in (0.05, 2.0, 1000.0, 100_000.0)] == ["0.05", "2", "1,000", "100,000"]


def test_an_svg_is_well_formed_and_has_a_line_and_a_label_for_each_series() -> None:
    root = ET.fromstring(svg(FALLING))

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Error <of> all & sundry", "visits", "per cent", "greedy", "random"} <= set(texts)
    lines = [path for path in root.iter("{http://www.w3.org/2000/svg}path") if path.get("stroke") in COLOURS[:2]]
    assert len(lines) == 4  # two in the plot and two in the legend


def test_values_without_a_logarithm_have_no_point() -> None:
    chart = Chart("t", "x", "y", (Series("a", ((0.0, 1.0), (1.0, 0.0), (1.0, math.nan), (2.0, 3.0))),), is_log_y=True)

    assert len(chart.scale_points(chart.series[0])) == 2
    assert "nan" not in svg(chart)


def test_a_plot_shows_the_falling_line_from_its_top_left_to_its_bottom_right() -> None:
    rows = render_plot(FALLING, width=40, height=10)

    assert all(row == row.rstrip() for row in rows)
    plotted = [row for row in rows if "┤" in row or "│" in row]
    assert len(plotted) == 10
    first = [row.index(DOTS[0]) for row in plotted if DOTS[0] in row]
    assert first == sorted(first)
    assert first[-1] - first[0] > 10
    assert "● greedy" in rows[2]


def test_every_line_of_a_full_chart_has_a_different_color_and_dot() -> None:
    assert len(COLOURS) == len(DASHES) == len(DOTS) == len(set(DOTS)) == len(set(COLOURS))


def test_more_lines_than_colors_can_be_drawn() -> None:
    chart = Chart("t", "x", "y", tuple(Series(f"line {n}", ((0.0, float(n)), (1.0, 1.0))) for n in range(20)))

    assert "line 19" in svg(chart)
    assert any("line 19" in row for row in render_plot(chart))
