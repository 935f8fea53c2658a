"""Line charts: what is to be shown, and an SVG of it that stands alone, light and without any script."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from crawler.cli.charts.axes import Axis, axis_over, shown

# Told apart by people who see colours differently, too: Okabe and Ito, "Color universal design", 2008.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#8c6d31")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "", "7 3", "2 3", "9 3 2 3")
LEFT, TOP, BOTTOM = 64, 44, 52  # pixels around the plot
CHARACTER = 7.0  # pixels of a letter of the legend, about


@dataclass(frozen=True, slots=True)
class Series:
    """One line: points in order of x. Numbers that are not finite, or that a logarithm has not, make no point."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Some lines over the same axes; of more than there are COLOURS the first ones look like the last."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False

    def axes(self) -> tuple[Axis, Axis]:
        """The axes that hold all points."""
        points = [point for series in self.series for point in series.points]
        horizontal = axis_over((x for x, _ in points), log=self.log_x)
        return horizontal, axis_over((y for _, y in points), log=self.log_y)

    def points(self, series: Series) -> list[tuple[float, float]]:
        """The points of a line that can be shown, x and y from 0 to 1."""
        x_axis, y_axis = self.axes()
        return [
            (x_axis.place(x), y_axis.place(y))
            for x, y in series.points
            if (x > 0 or not self.log_x) and (y > 0 or not self.log_y) and abs(x) + abs(y) < float("inf")
        ]


Named = list[tuple[str, Chart]]  # each with the name of its file, without the ending


def svg(chart: Chart, *, width: int = 720, height: int = 400) -> str:
    """The chart as an SVG document, width and height in pixels: axes, grid, lines with dots, and a legend beside."""
    legend = 44 + CHARACTER * max((len(series.label) for series in chart.series), default=0)
    plot = _Plot(chart, width=width - LEFT - legend, height=height - TOP - BOTTOM)
    body = "\n".join([*_frame(plot), *_lines(plot), *_legend(plot)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(chart.title)}" font-family="system-ui, sans-serif" font-size="12" '
        f'fill="#333">\n<rect width="{width}" height="{height}" fill="#fff"/>\n'
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="600">{escape(chart.title)}</text>\n{body}\n</svg>\n'
    )


@dataclass(frozen=True, slots=True)
class _Plot:
    """The chart and the room for its lines, in pixels."""

    chart: Chart
    width: float
    height: float

    def x(self, place: float) -> float:
        return LEFT + place * self.width

    def y(self, place: float) -> float:
        return TOP + (1 - place) * self.height


def _frame(plot: _Plot) -> Iterator[str]:
    """The grid, the numbers on it, and what the axes are called."""
    x_axis, y_axis = plot.chart.axes()
    left, right, top, bottom = plot.x(0), plot.x(1), plot.y(1), plot.y(0)
    for mark in y_axis.marks():
        y = plot.y(y_axis.place(mark))
        yield f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#ddd"/>'
        yield f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{shown(mark)}</text>'
    for mark in x_axis.marks():
        x = plot.x(x_axis.place(mark))
        yield f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" stroke="#eee"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{shown(mark)}</text>'
    yield f'<path d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}" stroke="#333" fill="none"/>'
    middle = (left + right) / 2
    yield f'<text x="{middle:.1f}" y="{bottom + 40:.1f}" text-anchor="middle">{escape(plot.chart.x_label)}</text>'
    yield (
        f'<text transform="translate(16 {(top + bottom) / 2:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot.chart.y_label)}</text>"
    )


def _lines(plot: _Plot) -> Iterator[str]:
    for n, series in enumerate(plot.chart.series):
        places = [(plot.x(x), plot.y(y)) for x, y in plot.chart.points(series)]
        if not places:
            continue
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        yield f'<path d="M{path}" fill="none" {_stroke(n)}/>'
        if len(places) <= 40:
            dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>' for x, y in places)
            yield f'<g fill="{COLOURS[n % len(COLOURS)]}">{dots}</g>'


def _legend(plot: _Plot) -> Iterator[str]:
    left = plot.x(1) + 14
    for n, series in enumerate(plot.chart.series):
        y = TOP + 8 + 20 * n
        yield f'<path d="M{left:.1f} {y}h20" {_stroke(n)}/>'
        yield f'<text x="{left + 26:.1f}" y="{y + 4}">{escape(series.label)}</text>'


def _stroke(n: int) -> str:
    colour, dashes = COLOURS[n % len(COLOURS)], DASHES[n % len(DASHES)]
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'stroke="{colour}" stroke-width="2" stroke-linejoin="round"{dash}'
