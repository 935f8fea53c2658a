"""Charts drawn in the terminal, and written as SVG files."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from crawler.cli.charts.chart import Chart, Named, svg
from crawler.cli.charts.plot import DOTS, plot
from crawler.cli.output import out, remark, say
from crawler.errors import CrawlerError

PLOT_WIDTH = 72  # characters, where there is room
COLOURS = ("blue", "red", "green", "magenta", "yellow", "cyan", "white", "bright_black")


def show_charts(charts: Sequence[tuple[str, Chart]], *, folder: Path | None, on_terminal: bool) -> None:
    """Draw charts where somebody looks at a terminal, and write them to a folder where one is given.

    charts: a file's name without its ending, and what it shows.  Raises CrawlerError where a file cannot be written.
    """
    if on_terminal and out().is_terminal:
        for _, chart in charts:
            say("")
            for line in plot(chart):
                say(line)
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, chart in charts:
            (folder / f"{name}.svg").write_text(svg(chart), encoding="utf-8")
    except OSError as error:
        raise CrawlerError(f"{folder} cannot be written: {error.strerror}") from error
    remark(f"{len(charts)} figures in {folder}")


def show_plots(charts: Named) -> None:
    """The curves in the terminal, in colours where it has them."""
    width = max(min(out().width - 16, PLOT_WIDTH), 20)
    for _, chart in charts:
        say("")
        for row in plot(chart, width=width):
            line = Text(row)
            for dot, colour in zip(DOTS, COLOURS, strict=True):
                line.highlight_words([dot], colour)
            out().print(line, soft_wrap=True)


def write_figures(charts: Named, folder: Path | None) -> None:
    """Write the charts as SVG. Raises CrawlerError where that cannot be."""
    if folder is None:
        return
    if not charts:
        remark("No figures: a line takes two rates of change above 0")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, chart in charts:
            (folder / f"{name}.svg").write_text(svg(chart), encoding="utf-8")
    except OSError as error:
        raise CrawlerError(f"the figures cannot be written: {error}") from error
    remark(f"Wrote {', '.join(f'{name}.svg' for name, _ in charts)} to {folder}")
