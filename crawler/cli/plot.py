"""Line charts in plain characters, for a terminal or a log."""

from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from crawler.cli.output import get_stdout, say
from crawler.format.axes import Axis, format_tick, make_axis

DOTS = "●○◆◇▲△■□"  # one for each line of a chart
COLORS = ("blue", "red", "green", "magenta", "yellow", "cyan", "white", "bright_black")
PLOT_WIDTH = 72  # characters, where there is room


@dataclass(frozen=True, slots=True)
class Series:
    """One line: points in order of x. Numbers that are not finite, or that a logarithm has not, make no point."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Some lines over the same axes; lines beyond the eighth look like the first ones."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    is_log_x: bool = False
    is_log_y: bool = False

    def make_axes(self) -> tuple[Axis, Axis]:
        """The axes that hold all points."""
        points = [point for series in self.series for point in series.points]
        horizontal = make_axis((x for x, _ in points), is_log=self.is_log_x)
        return horizontal, make_axis((y for _, y in points), is_log=self.is_log_y)

    def scale_points(self, series: Series) -> list[tuple[float, float]]:
        """The points of a line that can be shown, x and y from 0 to 1."""
        x_axis, y_axis = self.make_axes()
        return [
            (x_axis.normalize(x), y_axis.normalize(y))
            for x, y in series.points
            if (x > 0 or not self.is_log_x) and (y > 0 or not self.is_log_y) and abs(x) + abs(y) < float("inf")
        ]


NamedCharts = list[tuple[str, Chart]]  # each with the name of its file, without the ending


def show_plots(charts: NamedCharts) -> None:
    """Print the charts, in colors where the terminal has them."""
    width = max(min(get_stdout().width - 16, PLOT_WIDTH), 20)
    for _, chart in charts:
        say("")
        for row in render_plot(chart, width=width):
            line = Text(row)
            for dot, color in zip(DOTS, COLORS, strict=True):
                line.highlight_words([dot], color)
            get_stdout().print(line, soft_wrap=True)


def render_plot(chart: Chart, *, width: int = 72, height: int = 16) -> list[str]:
    """The chart, a string for each row, blanks at no row's end.

    width, height: of the plot itself, in characters, at least 8 and 3.  Where two lines meet, the first one is seen.
    """
    cells = [[" "] * width for _ in range(height)]
    for n, series in reversed(list(enumerate(chart.series))):
        for x, y in _interpolate(chart.scale_points(series), width=width):
            cells[round((1 - y) * (height - 1))][round(x * (width - 1))] = DOTS[n % len(DOTS)]
    x_axis, y_axis = chart.make_axes()
    numbers = _label_rows(y_axis, height)
    margin = max(map(len, numbers))
    rows = [
        f"{number:>{margin}} {'┤' if number else '│'}{''.join(line)}"
        for number, line in zip(numbers, cells, strict=True)
    ]
    rows.append(" " * (margin + 1) + "└" + "─" * width)
    rows.append(" " * (margin + 2) + _label_columns(x_axis, width))
    legend = "   ".join(f"{DOTS[n % len(DOTS)]} {series.label}" for n, series in enumerate(chart.series))
    head = [chart.title, f"{chart.y_label}, by {chart.x_label}", legend, ""]
    return [row.rstrip() for row in [*head, *rows]]


def _interpolate(points: list[tuple[float, float]], *, width: int) -> list[tuple[float, float]]:
    """The points, and one for every column between two of them."""
    filled = list(points[:1])
    for (x, y), (next_x, next_y) in pairwise(points):
        steps = max(round(abs(next_x - x) * (width - 1)), 1)
        filled += [(x + (next_x - x) * n / steps, y + (next_y - y) * n / steps) for n in range(1, steps + 1)]
    return filled


def _label_rows(axis: Axis, height: int) -> list[str]:
    """The number beside each row, or nothing."""
    numbers = [""] * height
    for mark in axis.marks():
        numbers[round((1 - axis.normalize(mark)) * (height - 1))] = format_tick(mark)
    return numbers


def _label_columns(axis: Axis, width: int) -> str:
    """The numbers below, each centred on its column, those left out that would touch another."""
    line = ""
    for mark in axis.marks():
        number = format_tick(mark)
        start = max(round(axis.normalize(mark) * (width - 1)) - len(number) // 2, 0)
        if start >= len(line) + (2 if line else 0):
            line = line.ljust(start) + number
    return line
