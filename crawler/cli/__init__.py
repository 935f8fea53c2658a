"""The `recrawl` command: parse the arguments, call crawler.app and print the result.

Folders group the commands by subject. The module of a command holds its options, its help and short output; longer
output is in a module `*_output` beside it. `app.COMMAND_LOCATIONS` lists all commands. `--help` imports the module of a
command, so these modules import heavy code (most of crawler.app, crawler.format and their output module) from `lazy`.
"""

from crawler.cli.main import main
