"""The command `recrawl`: parses what was typed, calls the rooms, prints what they give.

`main` is its entrance. Each command is imported when it is called, so that `--help` waits for none of them. It may
use all packages below it. The web UI (crawler/server) does what the command does.
"""

from crawler.cli.main import main
