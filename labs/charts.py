"""Line charts as standalone SVG files without scripts, for labs and benchmarks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from crawler.cli.output import get_stdout, remark, say
from crawler.cli.plot import Chart, NamedCharts, render_plot
from crawler.errors import CrawlerError
from crawler.format.axes import format_tick

# Distinguishable for color-blind readers: Okabe and Ito, "Color universal design", 2008.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#8c6d31")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "", "7 3", "2 3", "9 3 2 3")
LEFT, TOP, BOTTOM = 64, 44, 52  # pixels around the plot
CHARACTER = 7.0  # approximate width of a letter of the legend, in pixels


def svg(chart: Chart, *, width: int = 720, height: int = 400) -> str:
    """Return the chart as an SVG document with axes, grid, lines with dots, and a legend; sizes in pixels."""
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
    """A chart with the area for its lines, in pixels."""

    chart: Chart
    width: float
    height: float

    def x(self, place: float) -> float:
        return LEFT + place * self.width

    def y(self, place: float) -> float:
        return TOP + (1 - place) * self.height


def _frame(plot: _Plot) -> Iterator[str]:
    """Yield the grid, its numbers, and the labels of the axes."""
    x_axis, y_axis = plot.chart.make_axes()
    left, right, top, bottom = plot.x(0), plot.x(1), plot.y(1), plot.y(0)
    for mark in y_axis.marks():
        y = plot.y(y_axis.normalize(mark))
        yield f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#ddd"/>'
        yield f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{format_tick(mark)}</text>'
    for mark in x_axis.marks():
        x = plot.x(x_axis.normalize(mark))
        yield f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" stroke="#eee"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{format_tick(mark)}</text>'
    yield f'<path d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}" stroke="#333" fill="none"/>'
    middle = (left + right) / 2
    yield f'<text x="{middle:.1f}" y="{bottom + 40:.1f}" text-anchor="middle">{escape(plot.chart.x_label)}</text>'
    yield (
        f'<text transform="translate(16 {(top + bottom) / 2:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot.chart.y_label)}</text>"
    )


def _lines(plot: _Plot) -> Iterator[str]:
    for n, series in enumerate(plot.chart.series):
        places = [(plot.x(x), plot.y(y)) for x, y in plot.chart.scale_points(series)]
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


def show_charts(charts: Sequence[tuple[str, Chart]], *, folder: Path | None, on_terminal: bool) -> None:
    """Print charts if the output is a terminal, and write them to a folder if one is given.

    charts: each with its file name without suffix.  Raise CrawlerError if a file cannot be written.
    """
    if on_terminal and get_stdout().is_terminal:
        for _, chart in charts:
            say("")
            for line in render_plot(chart):
                say(line)
    if folder is not None:
        _write(charts, folder)
        remark(f"{len(charts)} figures in {folder}")


def write_figures(charts: NamedCharts, folder: Path | None) -> None:
    """Write the charts as SVG to a folder, if one is given. Raise CrawlerError if that fails."""
    if folder is None:
        return
    if not charts:
        remark("No figures were written: a line needs at least two change rates above 0")
        return
    _write(charts, folder)
    remark(f"Wrote {', '.join(f'{name}.svg' for name, _ in charts)} to {folder}")


def _write(charts: Sequence[tuple[str, Chart]], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, chart in charts:
            (folder / f"{name}.svg").write_text(svg(chart), encoding="utf-8")
    except OSError as error:
        raise CrawlerError(f"the figures cannot be written to {folder}: {error.strerror}") from error
