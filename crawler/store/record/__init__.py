"""Recording of finished visits, one transaction per batch.

`record_visits` writes visits, snapshots, discovered pages, cash, due times and events; `admit_list_chunk` admits the
pages of a sitemap or a feed; `drain_inbox` applies the messages in the inbox; `judge_moves` separates real moves from
outages. This package may use frontier and the packages that frontier may use. The names are imported on
first use, because most commands need few of them.
"""

from typing import TYPE_CHECKING

from crawler.store.lazy_names import make_getattr

if TYPE_CHECKING:
    from crawler.store.record.clocks import reset_clock
    from crawler.store.record.content import StoredBody, decompress_body, load_stored_body, read_body
    from crawler.store.record.inbox import drain_inbox
    from crawler.store.record.lists import ListChunk, ListChunkResult, admit_list_chunk
    from crawler.store.record.moves import judge_moves
    from crawler.store.record.record import Batch, record_visits, request_renders
    from crawler.store.record.shared_schedules import propose_pairs

__getattr__ = make_getattr(__name__, __file__)
