"""Word differences for a terminal: in color where supported, else as [-old-]{+new+}."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace
from rich.padding import Padding
from rich.text import Text

from crawler.app.pages import RunKind, WordRun, format_runs
from crawler.cli.output import get_stdout, make_printable

STYLES = {RunKind.KEPT: "", RunKind.OLD: "red strike", RunKind.NEW: "bold green"}


def mark_runs(runs: Iterable[WordRun]) -> Text:
    """Format runs of words as one line, without control characters."""
    runs = [replace(run, text=make_printable(run.text).replace("\n", " ")) for run in runs]
    if get_stdout().color_system is None:
        return Text(format_runs(runs))
    return Text.assemble(*((run.text, STYLES[run.kind]) for run in runs))


def say_indented(text: Text, *, indent: int, hanging: int = 0) -> None:
    """Print a paragraph indented by `indent` columns, and all lines but the first by `hanging` columns more."""
    console = get_stdout()
    if not console.is_terminal:
        console.print(Text(" " * indent) + text, soft_wrap=True)
        return
    lines = text.wrap(console, max(console.width - indent - hanging, 20))
    for n, line in enumerate(lines):
        console.print(Padding(line, (0, 0, 0, indent + (hanging if n else 0)), expand=False))


def join_parts(parts: Sequence[str]) -> str:
    """Join the parts that are not empty with commas."""
    return ", ".join(part for part in parts if part)
