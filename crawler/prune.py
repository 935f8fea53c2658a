"""What is kept of the past, applied: `prune` goes through the domains, chunk by chunk.

Versions are thinned out, old visits packed, and what is too old is forgotten. `enforce_quota` does for one domain what
cannot wait for the night; `foretold` says what it would free. Every chunk is a transaction of its own, so that a crawl
goes on beside it, and whatever ends it, the next one goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.retention import changes, versions, visits
from crawler.store.retention.changes import SlowestReader
from crawler.store.retention.estimate import SizeEstimate, estimate_size
from crawler.store.retention.versions import ThinResult, VersionRef

SAMPLE_MARGIN = 0.6  # of the quota, as a sample tells it: the mean of 200 pages is hardly ever off by so much
MAX_FILL_CHUNKS = 100  # chunks of events: what `recrawl duplicates` has to read of them before they go


@dataclass(slots=True)
class PruneStats:
    """What was taken of a domain, or with a dry run what would be.

    versions: thinned out, of which `over_quota` are beyond what the settings ask, since the quota was exceeded.
    bodies: that no version says any more.  freed_bytes: of texts and bodies, as they were stored.
    packed: visits.  merged: visits whose packs of a month were merged.  visits, changes: forgotten.
    unread: changes that are old enough to be forgotten and stay, since `reader` has not read them.
    deferred_versions: versions that stay for it, beyond what the settings keep, and of a domain above its quota beyond
    the newest.  reader: whoever holds something back; empty where nobody does.  reader_since: when the oldest change
    was found that it has not read.  remedy: what a person can do about it.  stored_bytes: that texts and bodies take
    afterwards.  excess_bytes: bytes above the quota that remain, since a page's newest version is never taken, nor one
    to be read yet.
    """

    domain: str
    versions: int = 0
    over_quota: int = 0
    bodies: int = 0
    freed_bytes: int = 0
    packed: int = 0
    merged: int = 0
    visits: int = 0
    changes: int = 0
    unread: int = 0
    deferred_versions: int = 0
    reader: str = ""
    reader_since: datetime | None = None
    remedy: str = ""
    stored_bytes: int = 0
    excess_bytes: int = 0

    @property
    def deferral_note(self) -> str:
        """What stays for a reader, for whom, since when, and the next step, as a sentence; empty where nothing does."""
        if not self.reader:
            return ""
        deferred_counts = ((self.deferred_versions, "versions"), (self.unread, "old changes"))
        what = " and ".join(f"{count:,} {noun}" for count, noun in deferred_counts if count)
        since = f" since {self.reader_since:%Y-%m-%d %H:%M %Z}" if self.reader_since else ""
        return f"{what} stay for {self.reader}, which has not read what was found{since} ({self.remedy})"


async def prune_domains(
    db: Database, requested: Sequence[Domain], *, at: datetime, dry_run: bool = False
) -> list[PruneStats]:
    """Prune domains, one after the other; a dry run changes nothing, and says what would go.

    at: real time, for months that are over; ages count by each domain's last visit, so that one that nobody looks at
    loses nothing.
    """
    results = []
    for domain in requested:
        # Others took their time: what is asked to be kept now is kept, and what was removed is not pruned.
        current = await domains.find_domain(db, domain.authority)
        if current is not None:
            results.append(await prune_domain(db, current, at=at, dry_run=dry_run))
    if not dry_run:
        await visits.drop_empty_partitions(db, at=at)
    return results


async def prune_domain(db: Database, domain: Domain, *, at: datetime, dry_run: bool = False) -> PruneStats:
    """Prune one domain. Raises BadInput if it was removed meanwhile."""
    last_visit_at = (await domains.read_status(db, domain, at=at)).last_visit_at
    pruning = await _begin_pruning(db, domain, dry_run=dry_run)
    if last_visit_at is not None:
        await pruning.thin_versions()
        await pruning.enforce_quota()
        await pruning.forget_and_pack_visits(last_visit_at)
        await pruning.forget_changes(last_visit_at)
        await pruning.note_reader()
        if not dry_run:
            await pruning.sweep_bodies()
    return await pruning.finish()


async def enforce_quota(db: Database, domain: Domain) -> PruneStats | None:
    """Thin out the versions of a domain that takes more than its quota; None where it does not, or has none.

    First as its settings say, then the oldest ones. A domain with room to spare is told by a sample of its pages, so
    that this costs little and can be done every hour.
    """
    quota = domain.settings.quota
    if quota is None:
        return None
    size = await estimate_pruning(db, domain)
    if size.stored_bytes < (1.0 if size.is_exact else SAMPLE_MARGIN) * quota:
        return None
    if await versions.compute_stored_bytes(db, domain) <= quota:
        return None
    pruning = await _begin_pruning(db, domain, dry_run=False)
    await pruning.thin_versions()
    await pruning.enforce_quota()
    await pruning.note_reader()
    return await pruning.finish()


async def estimate_pruning(db: Database, domain: Domain) -> SizeEstimate:
    """What the versions of a domain take, and what of it the next pruning frees, by a sample of its pages."""
    read_until = (await _begin_pruning(db, domain, dry_run=True)).read_until
    return await estimate_size(db, domain, read_until=read_until)


async def _begin_pruning(db: Database, domain: Domain, *, dry_run: bool) -> "_Pruning":
    reader = await changes.find_slowest_reader(db, domain)
    return _Pruning(db, domain, PruneStats(domain.authority), reader, dry_run=dry_run)


@dataclass(slots=True)
class _Pruning:
    """The pruning of one domain, step by step. reader: who must read all changes and has read least of them."""

    db: Database
    domain: Domain
    result: PruneStats
    reader: SlowestReader | None
    dry_run: bool

    @property
    def read_until(self) -> int | None:
        return self.reader.position if self.reader is not None else None

    async def thin_versions(self) -> None:
        """Thin out versions as the settings say."""
        after: PageKey | None = PageKey(b"")
        while after is not None:
            choice = await versions.find_versions_to_thin(self.db, self.domain, after=after, read_until=self.read_until)
            await self._thin_chosen(choice.versions)
            self.result.deferred_versions += choice.deferred_count
            after = choice.last

    async def enforce_quota(self) -> None:
        """Thin out the oldest versions until the rest is within the quota."""
        quota = self.domain.settings.quota
        if quota is None:
            return
        excess, last, deferred_count = await self._compute_stored_bytes() - quota, None, 0
        while excess > 0:
            choice = await versions.find_oldest_versions(self.db, self.domain, after=last, read_until=self.read_until)
            last, deferred_count = choice.last, deferred_count + choice.deferred_count
            if last is None:
                # all but the newest were looked at
                self.result.deferred_versions = max(self.result.deferred_versions, deferred_count)
                return
            sizes = accumulate((name.size for name in choice.versions), initial=0)
            chosen = [name for name, before in zip(choice.versions, sizes, strict=False) if before < excess]
            thinned = await self._thin_chosen(chosen)
            excess -= thinned.freed_bytes
            self.result.over_quota += thinned.versions
            if chosen and len(chosen) < len(choice.versions):
                last = chosen[-1]  # bodies that others say as well freed less than they seemed to
                deferred_count -= choice.deferred_count  # these are looked at once more

    async def forget_and_pack_visits(self, last_visit_at: datetime) -> None:
        """Forget visits that are too old, pack old ones, and merge the packs of months that are over."""
        db, domain, result, max_age = self.db, self.domain, self.result, self.domain.settings.keep_visits
        if max_age is not None and self.dry_run:
            result.visits = await visits.count_visits(db, domain, before=last_visit_at - max_age)
        elif max_age is not None:
            while count := await visits.forget_visits(db, domain, before=last_visit_at - max_age):
                result.visits += count
        waiting = await visits.find_visits_to_pack(db, domain)
        if waiting is not None and self.dry_run:
            result.packed = waiting.visits
        elif waiting is not None:
            result.packed, after = await visits.pack_visits(db, domain, waiting)
            while after is not None:
                chunk, after = await visits.pack_visits(db, domain, waiting, after=after)
                result.packed += chunk
        for packs in await visits.find_packs_to_merge(db, domain):
            result.merged += packs.visits if self.dry_run else await visits.merge_packs(db, domain, packs)

    async def forget_changes(self, last_visit_at: datetime) -> None:
        """Forget changes that are too old, unless somebody has still to read them."""
        max_age = self.domain.settings.keep_changes
        if max_age is None:
            return
        if not self.dry_run:
            await report.append_to_feed(self.db, at=last_visit_at)
            await report.fill_fingerprints(self.db, self.domain, max_chunks=MAX_FILL_CHUNKS)
        before = last_visit_at - max_age
        old = remaining = await changes.find_changes_to_forget(self.db, self.domain, before=before)
        if self.reader is not None:
            remaining = await changes.find_changes_to_forget(
                self.db, self.domain, before=before, read_until=self.read_until
            )
        self.result.changes, self.result.unread = len(remaining), len(old) - len(remaining)
        while remaining and not self.dry_run:
            remaining = await changes.forget_changes(self.db, self.domain, remaining)

    async def note_reader(self) -> None:
        """Note the reader that holds something back, if any."""
        if self.reader is not None and (self.result.deferred_versions or self.result.unread):
            self.result.reader, self.result.remedy = str(self.reader), self.reader.remedy
            self.result.reader_since = await changes.find_first_unread_at(self.db, self.domain, self.reader)

    async def sweep_bodies(self) -> None:
        """Take the bodies that no version says."""
        after: bytes | None = b""
        while after is not None:
            swept, after = await versions.sweep_bodies(self.db, self.domain, after=after)
            self._add_counts(swept)

    async def finish(self) -> PruneStats:
        """Return what was done, with what is stored afterwards."""
        stored, quota = await self._compute_stored_bytes(), self.domain.settings.quota
        self.result.stored_bytes, self.result.excess_bytes = stored, max(0, stored - quota) if quota is not None else 0
        return self.result

    async def _compute_stored_bytes(self) -> int:
        """Return what texts and bodies take; in a dry run what they would."""
        return await versions.compute_stored_bytes(self.db, self.domain) - (
            self.result.freed_bytes if self.dry_run else 0
        )

    async def _thin_chosen(self, chosen: Sequence[VersionRef]) -> ThinResult:
        thin_function = versions.preview_thinning if self.dry_run else versions.thin_versions
        thinned = await thin_function(self.db, self.domain, chosen)
        self._add_counts(thinned)
        return thinned

    def _add_counts(self, thinned: ThinResult) -> None:
        self.result.versions += thinned.versions
        self.result.bodies += thinned.bodies
        self.result.freed_bytes += thinned.freed_bytes
