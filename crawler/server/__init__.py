"""The web UI and the HTTP API: changes, freshness and likely stale pages, in the browser or as static files.

`serve` serves them, and `write_pages` writes static files. The pages show the reports of the store and the forecasts of
the planner; the forms call the same functions as the commands.
"""

from crawler.server.server import serve
from crawler.server.ui.files import WriteResult, write_pages
from crawler.server.ui.links import build_history_url
