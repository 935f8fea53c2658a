"""WALKS: one shift, one lease, one page at a time through the rooms.

`run_shift` claims domains and crawls several at once; `crawl_lease` crawls one and gives it back, whatever happens;
the coordinator's head tells how the parts work together. `try_page` is one look that records nothing. Uses core, web,
store, settings and clock; the command and the flows call it.
"""

from crawler.crawl.lease import LeaseResult
from crawler.crawl.parser_pool import DomainParser, ParserPool
from crawler.crawl.shift import ShiftResult, holder_name, keep_what_is_loaded, run_shift
from crawler.crawl.stats import CrawlStats
from crawler.crawl.tools import open_tools
from crawler.crawl.try_page import TryResult, try_page

__all__ = [
    "CrawlStats",
    "DomainParser",
    "LeaseResult",
    "ParserPool",
    "ShiftResult",
    "TryResult",
    "holder_name",
    "keep_what_is_loaded",
    "open_tools",
    "run_shift",
    "try_page",
]
