"""Words that differ, as people see them: in colour where there is some, as [-old-]{+new+} elsewhere."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.padding import Padding
from rich.text import Text

from crawler.app.pages import RunKind, WordRun, format_runs
from crawler.cli.output import get_stdout, make_printable

STYLES = {RunKind.KEPT: "", RunKind.OLD: "red strike", RunKind.NEW: "bold green"}


def mark_runs(runs: Iterable[WordRun]) -> Text:
    """Runs of words in one line, harmless to the terminal whatever a page says."""
    runs = [replace(run, text=make_printable(run.text).replace("\n", " ")) for run in runs]
    if get_stdout().color_system is None:
        return Text(format_runs(runs))
    return Text.assemble(*((run.text, STYLES[run.kind]) for run in runs))


def say_indented(text: Text, *, indent: int, hanging: int = 0) -> None:
    """A paragraph that begins `indent` columns from the left; its other lines stand `hanging` columns further in."""
    console = get_stdout()
    if not console.is_terminal:
        console.print(Text(" " * indent) + text, soft_wrap=True)
        return
    lines = text.wrap(console, max(console.width - indent - hanging, 20))
    for n, line in enumerate(lines):
        console.print(Padding(line, (0, 0, 0, indent + (hanging if n else 0)), expand=False))


def join_parts(parts: Sequence[str]) -> str:
    """Facts of one line, those that say something."""
    return ", ".join(part for part in parts if part)
