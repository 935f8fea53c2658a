"""WALKS: one shift, one lease, one page at a time through the rooms.

`run_shift` claims domains and crawls several at once; `crawl_lease` crawls one and gives it back, whatever happens; the
coordinator's head tells how the parts work together. `try_page` is one look that records nothing, `diff_versions` reads
two stored versions of a page again. A `PacedWeb` is how anybody here or in registration asks the web. Uses core, web,
store, settings and clock; the command, the flows and registration call it.
"""

from crawler.engine.coordinator import CrawlLimits
from crawler.engine.lease import BAD_PATTERN
from crawler.engine.machine import child_environment, give_back, settle_memory
from crawler.engine.page_diff import diff_versions
from crawler.engine.parsing import DomainParser, ParserPool
from crawler.engine.requests.login import LOGIN_FAILED
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.requester import PacedWeb
from crawler.engine.requests.robots import ask_for_robots, good_copy
from crawler.engine.requests.session import NO_CERTIFICATES, NO_SECRET
from crawler.engine.resources import open_resources
from crawler.engine.shift import ShiftHooks, holder_name, run_shift
from crawler.engine.stats import CrawlStats, FoundPage, LeaseResult, ShiftResult
from crawler.engine.try_page import TryResult, TryWay, try_page
