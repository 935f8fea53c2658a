"""The command `recrawl`: parses what was typed, calls crawler.app, prints what it gives.

Each command has a module in a folder by subject: its options, its help and what it prints. Where printing takes many
lines there is a module `*_output` beside it. `app.PLACES` says where each is. A command's module is imported by
`--help`, so that it takes what is heavy (most of crawler.app and crawler.format, its output module) from `lazy`.
"""

from crawler.cli.main import main
