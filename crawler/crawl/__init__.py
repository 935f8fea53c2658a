"""WALKS: one shift, one lease, one page at a time through the rooms.

`run_shift` claims domains and crawls several at once; `crawl_lease` crawls one and gives it back, whatever happens;
the coordinator's head tells how the parts work together. `try_page` is one look that records nothing. Uses core, web,
store, settings and clock; the command and the flows call it.
"""

from crawler.crawl.lease import Walked
from crawler.crawl.parser_pool import Lens, Readers
from crawler.crawl.shift import Shift, holder_name, keep_what_is_loaded, run_shift
from crawler.crawl.stats import Tally
from crawler.crawl.tools import open_webs
from crawler.crawl.try_page import Glimpse, glimpse

__all__ = [
    "Glimpse",
    "Lens",
    "Readers",
    "Shift",
    "Tally",
    "Walked",
    "glimpse",
    "holder_name",
    "keep_what_is_loaded",
    "open_webs",
    "run_shift",
]
