"""The crawl engine: crawl runs, leases and single visits.

`run_shift` claims domains and crawls several at once. `crawl_lease` crawls one domain and then releases its lease;
the docstring of `coordinator` explains how the parts work together. `try_page` fetches a page without recording it.
`diff_versions` compares two stored versions of a page. All requests to sites, also those of registration, go
through a `PacedServer`. Used by app, format, notify and runtime.
"""

import os

from crawler.core.page import reader_choice

reader_choice.choose_reader(os.environ.get(reader_choice.VARIABLE, ""))
