"""What is kept of the past: versions are thinned out, visits packed, changes forgotten; and what all of it takes.

Each function does one chunk, or says what the next one is; crawler/prune.py goes through them. The last
room of the store; it uses the files beside the rooms alone.
"""

from crawler.store.retention.changes import (
    SlowestReader,
    changes_to_forget,
    first_unread_at,
    forget_changes,
    slowest_reader,
)
from crawler.store.retention.estimate import SizeEstimate, estimate
from crawler.store.retention.vacuum import vacuum
from crawler.store.retention.versions import (
    Thinned,
    VersionName,
    oldest_versions,
    stored_bytes,
    sweep_bodies,
    thin,
    versions_to_thin,
    would_thin,
)
from crawler.store.retention.visits import (
    count_visits,
    drop_empty_partitions,
    forget_visits,
    merge_packs,
    pack_visits,
    packs_to_merge,
    visits_to_pack,
)
