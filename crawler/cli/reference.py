"""The reference pages, made from the settings and the commands themselves: python -m crawler.cli.reference."""

import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import typer

from crawler.cli.app import app
from crawler.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
GENERATED_NOTE = "<!-- Made by `python -m crawler.cli.reference`; a test holds it to what the program does. -->\n"


def render_settings_page() -> str:
    """docs/settings.md."""
    lines = [
        "# Settings",
        "",
        GENERATED_NOTE,
        "What is the same for every domain is read from the environment, once, when a command or a flow starts.",
        "Spans of time are written `90s`, `12h`, `7d` or `1h30m`, a bare number means seconds; lists are JSON.",
        "What may differ from domain to domain is set with",
        "[`recrawl domains set`](commands.md#recrawl-domains-set) instead.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        variable = field.validation_alias or f"RECRAWL_{name.upper()}"
        default = "" if field.default_factory else format_default(field.default)
        lines.append(f"| `{variable}` | {default} | {escape_cell(field.description or '')} |")
    return "\n".join(lines) + "\n"


def format_default(default: object) -> str:
    """A default as it would be written into the environment."""
    match default:
        case None:
            return "unset"
        case timedelta():
            seconds = default.total_seconds()
            return f"`{round(seconds) if seconds.is_integer() else seconds}`"
        case ():
            return "none"
        case tuple():
            return f"`{json.dumps(default)}`"
        case _:
            return f"`{default}`" if str(default) else "empty"


def render_commands_page() -> str:
    """docs/commands.md."""
    lines = ["# Commands", "", GENERATED_NOTE]
    group = typer.main.get_command(app)
    lines += [render_help(group.help), ""]
    for path, command in iterate_commands(group, ("recrawl",)):
        lines += [f"## {' '.join(path)}", "", render_help(command.help), ""]
        rows = [render_parameter(parameter) for parameter in command.params]
        if rows:
            lines += ["| | |", "|---|---|", *rows, ""]
    return "\n".join(lines).rstrip() + "\n"


def iterate_commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that are typed for it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from iterate_commands(command, (*path, name))
        else:
            yield (*path, name), command


def render_help(text: str | None) -> str:
    """A help text as Markdown: what stands under "Examples:" is code."""
    before, _, rest = (text or "").partition("Examples:\n")
    examples, _, after = rest.strip("\n").partition("\n\n")
    code = ["```sh", *(line.strip() for line in examples.splitlines()), "```"] if examples.strip() else []
    return "\n".join([before.strip(), "", *code, *(["", after.strip()] if after.strip() else [])]).strip()


def render_parameter(parameter: Any) -> str:
    """One option or argument."""
    names = [*parameter.opts, *parameter.secondary_opts]
    if not names[0].startswith("-"):
        names = [parameter.metavar or parameter.name.upper()]
    value = f" {parameter.metavar}" if names[0].startswith("-") and parameter.metavar else ""
    default = parameter.default
    default_note = f" Default: {default}." if default not in (None, False, "", (), []) and not callable(default) else ""
    return f"| `{escape_cell(', '.join(names) + value)}` | {escape_cell(parameter.help or '')}{default_note} |"


def escape_cell(text: str) -> str:
    """Text that stays within its cell of a table."""
    return text.replace("|", "\\|")


PAGES = {"settings.md": render_settings_page, "commands.md": render_commands_page}


def main() -> int:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
