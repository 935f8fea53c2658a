"""Charts of the laboratory: drawn in the terminal, written as SVG files."""

from collections.abc import Sequence
from pathlib import Path

from crawler.cli.output import out, remark, say
from crawler.errors import CrawlerError
from crawler.lab.charts import Chart, svg
from crawler.lab.plots import plot


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
