"""Line charts made of characters, for a terminal or a log."""

from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from crawler.cli.output import get_stdout, say
from crawler.format.axes import Axis, format_tick, make_axis

DOTS = "●○◆◇▲△■□"  # one symbol per line of a chart
COLORS = ("blue", "red", "green", "magenta", "yellow", "cyan", "white", "bright_black")
PLOT_WIDTH = 72  # characters, if the terminal is wide enough


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart: points in order of x. Infinite values, and on a log axis values <= 0, are not drawn."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over the same axes. Symbols repeat after the eighth line."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    is_log_x: bool = False
    is_log_y: bool = False

    def make_axes(self) -> tuple[Axis, Axis]:
        """Return the x and y axes that contain all points."""
        points = [point for series in self.series for point in series.points]
        horizontal = make_axis((x for x, _ in points), is_log=self.is_log_x)
        return horizontal, make_axis((y for _, y in points), is_log=self.is_log_y)

    def scale_points(self, series: Series) -> list[tuple[float, float]]:
        """Return the points of a line that can be drawn, with x and y scaled to 0..1."""
        x_axis, y_axis = self.make_axes()
        return [
            (x_axis.normalize(x), y_axis.normalize(y))
            for x, y in series.points
            if (x > 0 or not self.is_log_x) and (y > 0 or not self.is_log_y) and abs(x) + abs(y) < float("inf")
        ]


NamedCharts = list[tuple[str, Chart]]  # pairs of a file name without extension, and its chart


def show_plots(charts: NamedCharts) -> None:
    """Print the charts, in color where the terminal supports it."""
    width = max(min(get_stdout().width - 16, PLOT_WIDTH), 20)
    for _, chart in charts:
        say("")
        for row in render_plot(chart, width=width):
            line = Text(row)
            for dot, color in zip(DOTS, COLORS, strict=True):
                line.highlight_words([dot], color)
            get_stdout().print(line, soft_wrap=True)


def render_plot(chart: Chart, *, width: int = 72, height: int = 16) -> list[str]:
    """Render the chart as a list of rows without trailing blanks.

    width, height: the size of the plot area in characters, at least 8 and 3.  The first of two lines that meet is drawn
    on top.
    """
    cells = [[" "] * width for _ in range(height)]
    for n, series in reversed(list(enumerate(chart.series))):
        for x, y in _interpolate(chart.scale_points(series), width=width):
            cells[round((1 - y) * (height - 1))][round(x * (width - 1))] = DOTS[n % len(DOTS)]
    x_axis, y_axis = chart.make_axes()
    numbers = _label_rows(y_axis, height)
    margin = max(map(len, numbers))
    lines = zip(numbers, map("".join, cells), strict=True)
    rows = [f"{number:>{margin}} {'┤' if number else '│'}{line}" for number, line in lines]
    rows.append(" " * (margin + 1) + "└" + "─" * width)
    rows.append(" " * (margin + 2) + _label_columns(x_axis, width))
    legend = "   ".join(f"{DOTS[n % len(DOTS)]} {series.label}" for n, series in enumerate(chart.series))
    head = [chart.title, f"{chart.y_label}, by {chart.x_label}", legend, ""]
    return [row.rstrip() for row in [*head, *rows]]


def _interpolate(points: list[tuple[float, float]], *, width: int) -> list[tuple[float, float]]:
    """Return the points with linear interpolation for every column in between."""
    filled = list(points[:1])
    for (x, y), (next_x, next_y) in pairwise(points):
        steps = max(round(abs(next_x - x) * (width - 1)), 1)
        filled += [(x + (next_x - x) * n / steps, y + (next_y - y) * n / steps) for n in range(1, steps + 1)]
    return filled


def _label_rows(axis: Axis, height: int) -> list[str]:
    """Return the label of each row, empty where it has none."""
    numbers = [""] * height
    for mark in axis.marks():
        numbers[round((1 - axis.normalize(mark)) * (height - 1))] = format_tick(mark)
    return numbers


def _label_columns(axis: Axis, width: int) -> str:
    """Return the line of x labels, each centered on its column. Labels that would overlap are omitted."""
    line = ""
    for mark in axis.marks():
        number = format_tick(mark)
        start = max(round(axis.normalize(mark) * (width - 1)) - len(number) // 2, 0)
        if start >= len(line) + (2 if line else 0):
            line = line.ljust(start) + number
    return line
