"""A page of one's own: what changed, how fresh, what to worry about, in the browser and as files.

`serve` shows it on this machine to who has its key, `write_pages` writes it as files. It shows what the store's reports
and plan's forecasts say, in the words of the command, and its forms call what the commands call. Uses the command's
words and verbs, and the rooms below it.
"""

from crawler.server.server import serve
from crawler.server.ui.files import WriteResult, write_pages
from crawler.server.ui.links import build_history_url
