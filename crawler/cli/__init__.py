"""The command `recrawl`: parses what was typed, calls the rooms, prints what they give.

`main` is its entrance. Each command is imported when it is called, so that `--help` waits for none of them. It may
use all rooms but the laboratory, whose own command (crawler/lab/cli) uses the shell offered here; so do the pages of
crawler/server and the verbs of crawler/api, which do what the command does. Its commands alone may call those.
"""

from crawler.cli.main import main

__all__ = [
    "actions",
    "change_kinds",
    "charts",
    "exits",
    "main",
    "options",
    "output",
    "progress",
    "reasons",
    "session",
    "settings_options",
    "values",
    "waiting",
    "which_page",
]
