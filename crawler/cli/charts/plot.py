"""A chart in plain characters, for a terminal or a log."""

from itertools import pairwise

from crawler.cli.charts.axes import Axis, shown
from crawler.cli.charts.chart import Chart

DOTS = "●○◆◇▲△■□"  # one for each line of a chart


def plot(chart: Chart, *, width: int = 72, height: int = 16) -> list[str]:
    """The chart, a string for each row, blanks at no row's end.

    width, height: of the plot itself, in characters, at least 8 and 3.  Where two lines meet, the first one is seen.
    """
    cells = [[" "] * width for _ in range(height)]
    for n, series in reversed(list(enumerate(chart.series))):
        for x, y in _joined(chart.points(series), width=width):
            cells[round((1 - y) * (height - 1))][round(x * (width - 1))] = DOTS[n % len(DOTS)]
    x_axis, y_axis = chart.axes()
    numbers = _rows(y_axis, height)
    margin = max(map(len, numbers))
    rows = [
        f"{number:>{margin}} {'┤' if number else '│'}{''.join(line)}"
        for number, line in zip(numbers, cells, strict=True)
    ]
    rows.append(" " * (margin + 1) + "└" + "─" * width)
    rows.append(" " * (margin + 2) + _columns(x_axis, width))
    legend = "   ".join(f"{DOTS[n % len(DOTS)]} {series.label}" for n, series in enumerate(chart.series))
    head = [chart.title, f"{chart.y_label}, by {chart.x_label}", legend, ""]
    return [row.rstrip() for row in [*head, *rows]]


def _joined(points: list[tuple[float, float]], *, width: int) -> list[tuple[float, float]]:
    """The points, and one for every column between two of them."""
    found = list(points[:1])
    for (x, y), (next_x, next_y) in pairwise(points):
        steps = max(round(abs(next_x - x) * (width - 1)), 1)
        found += [(x + (next_x - x) * n / steps, y + (next_y - y) * n / steps) for n in range(1, steps + 1)]
    return found


def _rows(axis: Axis, height: int) -> list[str]:
    """The number beside each row, or nothing."""
    numbers = [""] * height
    for mark in axis.marks():
        numbers[round((1 - axis.place(mark)) * (height - 1))] = shown(mark)
    return numbers


def _columns(axis: Axis, width: int) -> str:
    """The numbers below, each centred on its column, those left out that would touch another."""
    line = ""
    for mark in axis.marks():
        number = shown(mark)
        start = max(round(axis.place(mark) * (width - 1)) - len(number) // 2, 0)
        if start >= len(line) + (2 if line else 0):
            line = line.ljust(start) + number
    return line
