"""The `recrawl` command. Nothing heavier than typer is imported until a command runs, so that --help is quick."""

from crawler.cli.main import main

__all__ = ["main"]
