"""Everything that finished visits leave behind, all of a batch in one transaction.

`record` writes visits, snapshots, found pages, cash, due times and events; `admit_list_chunk` admits what a sitemap or
a feed names; `drain_inbox` applies what others left in the inbox; `judge_moves` tells real moves from outages. Uses
frontier and what is before it.
"""

from crawler.store.record.content import StoredBody, decompress_body, load_stored_body, read_body
from crawler.store.record.inbox import drain_inbox
from crawler.store.record.lists import ListChunk, ListChunkResult, admit_list_chunk
from crawler.store.record.moves import judge_moves
from crawler.store.record.record import Batch, record_visits, request_renders
from crawler.store.record.reset_clock import reset_clock
from crawler.store.record.shared_schedules import propose_pairs
