"""Everything that finished visits leave behind, all of a batch in one transaction.

`record` writes visits, snapshots, found pages, cash, due times and events; `admit_listed` admits what a sitemap or a
feed names; `drain` applies what others left in the inbox; `judge_moves` tells real moves from outages. Uses hand_out
and what is before it.
"""

from crawler.store.record.content import StoredBody, body_of, stored_body, unpack
from crawler.store.record.inbox import drain
from crawler.store.record.lists import ChunkNews, ListChunk, admit_listed
from crawler.store.record.moves import judge_moves
from crawler.store.record.record import Batch, record, request_renders
from crawler.store.record.reset_clock import reset_clock
from crawler.store.record.shared_schedules import propose
