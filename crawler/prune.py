"""Pruning: apply the retention settings of domains.

`prune_domains` thins out old versions (deletes the text, headers and body of some), packs old visits (many into one
compact row), and deletes visits and changes that are too old. `enforce_quota` thins out the oldest versions of a domain
that exceeds its storage quota. `estimate_pruning` estimates what pruning would free. Each chunk is one transaction:
crawls continue meanwhile, and the next pruning continues an interrupted one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import accumulate

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.retention import changes, versions, visits
from crawler.store.retention.changes import SlowestReader
from crawler.store.retention.estimate import SizeEstimate, estimate_size
from crawler.store.retention.versions import ThinResult, VersionRef

# A share of the quota: if the size estimated from 200 pages is below it, the real size is hardly ever above the quota.
SAMPLE_MARGIN = 0.6
MAX_FILL_CHUNKS = 100  # per pruning: chunks of events from which fingerprints for `recrawl duplicates` are computed


class PruneStats(Struct):
    """What pruning deleted from a domain, or would delete in a dry run.

    versions: versions that were thinned out; `over_quota` of them only because the quota was exceeded.
    bodies: deleted bodies, which no version refers to.  freed_bytes: stored size of deleted texts, headers and bodies.
    packed: visits that were packed.  merged: visits in packs that were merged into one pack per month.
    visits, changes: how many were deleted.
    unread: changes that are old enough to be deleted but are kept because `reader` has not read them.
    deferred_versions: versions that are kept only because of `reader`.
    reader: the subscription or other reader of the change feed for which data is kept; empty if there is none.
    reader_since: when the oldest change that it has not read was found.  remedy: what the user can do about it.
    stored_bytes: size of texts, headers and bodies after pruning.
    excess_bytes: bytes above the quota that remain because newest versions and unread versions are never deleted.
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
        """Return a sentence about what is kept for which reader, since when, and what to do; empty if nothing is."""
        if not self.reader:
            return ""
        deferred_counts = ((self.deferred_versions, "versions"), (self.unread, "old changes"))
        what = " and ".join(f"{count:,} {noun}" for count, noun in deferred_counts if count)
        since = f" since {self.reader_since:%Y-%m-%d %H:%M %Z}" if self.reader_since else ""
        return f"{what} are kept for {self.reader}, which has not read the changes{since} ({self.remedy})"


async def prune_domains(
    db: Database, requested: Sequence[Domain], *, at: datetime, dry_run: bool = False
) -> list[PruneStats]:
    """Prune domains one after the other. A dry run only counts what would be deleted.

    at: the current real time, which decides which months are over. Ages are measured from each domain's last visit,
    so a domain that is not crawled loses nothing.
    """
    results = []
    for domain in requested:
        # Pruning the previous domains may take long; meanwhile settings may change and domains may be removed.
        current = await domains.find_domain(db, domain.authority)
        if current is not None:
            results.append(await prune_domain(db, current, at=at, dry_run=dry_run))
    if not dry_run:
        await visits.drop_empty_partitions(db, at=at)
    return results


async def prune_domain(db: Database, domain: Domain, *, at: datetime, dry_run: bool = False) -> PruneStats:
    """Prune one domain. Raise BadInput if it was removed meanwhile."""
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
    """Thin out the versions of a domain that exceeds its quota; return None if it has no quota or does not exceed it.

    Apply its retention settings first, then thin out the oldest versions. A sample of pages is enough to recognize a
    domain far below its quota, so this is cheap enough to run every hour.
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
    """Estimate the size of a domain's versions, and how much the next pruning frees, from a sample of its pages."""
    read_until = (await _begin_pruning(db, domain, dry_run=True)).read_until
    return await estimate_size(db, domain, read_until=read_until)


async def _begin_pruning(db: Database, domain: Domain, *, dry_run: bool) -> "_Pruning":
    reader = await changes.find_slowest_reader(db, domain)
    return _Pruning(db, domain, PruneStats(domain.authority), reader, dry_run=dry_run)


@dataclass(slots=True)
class _Pruning:
    """The pruning of one domain, step by step. reader: the reader of the change feed that is furthest behind."""

    db: Database
    domain: Domain
    result: PruneStats
    reader: SlowestReader | None
    dry_run: bool

    @property
    def read_until(self) -> int | None:
        return self.reader.position if self.reader is not None else None

    async def thin_versions(self) -> None:
        """Thin out versions according to the retention settings."""
        after: PageKey | None = PageKey(b"")
        while after is not None:
            choice = await versions.find_versions_to_thin(self.db, self.domain, after=after, read_until=self.read_until)
            await self._thin_chosen(choice.versions)
            self.result.deferred_versions += choice.deferred_count
            after = choice.last

    async def enforce_quota(self) -> None:
        """Thin out the oldest versions until the stored size is within the quota, or none is left to thin out."""
        quota = self.domain.settings.quota
        if quota is None:
            return
        excess, last, deferred_count = await self._compute_stored_bytes() - quota, None, 0
        while excess > 0:
            choice = await versions.find_oldest_versions(self.db, self.domain, after=last, read_until=self.read_until)
            last, deferred_count = choice.last, deferred_count + choice.deferred_count
            if last is None:
                # every version except the newest ones was considered
                self.result.deferred_versions = max(self.result.deferred_versions, deferred_count)
                return
            sizes = accumulate((version.size for version in choice.versions), initial=0)
            chosen = [version for version, before in zip(choice.versions, sizes, strict=False) if before < excess]
            thinned = await self._thin_chosen(chosen)
            excess -= thinned.freed_bytes
            self.result.over_quota += thinned.versions
            if chosen and len(chosen) < len(choice.versions):
                last = chosen[-1]  # bodies shared with other versions freed less than computed
                deferred_count -= choice.deferred_count  # the next round counts them again

    async def forget_and_pack_visits(self, last_visit_at: datetime) -> None:
        """Delete visits that are too old, pack old ones, and merge the packs of months that are over."""
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
        """Delete changes that are too old, except those that a reader has not read yet."""
        max_age = self.domain.settings.keep_changes
        if max_age is None:
            return
        if not self.dry_run:
            await report.append_to_feed(self.db, at=last_visit_at)
            await report.fill_fingerprints(self.db, self.domain, max_chunks=MAX_FILL_CHUNKS)
        before = last_visit_at - max_age
        find_changes = partial(changes.find_changes_to_forget, self.db, self.domain, before=before)
        old = remaining = await find_changes()
        if self.reader is not None:
            remaining = await find_changes(read_until=self.read_until)
        self.result.changes, self.result.unread = len(remaining), len(old) - len(remaining)
        while remaining and not self.dry_run:
            remaining = await changes.forget_changes(self.db, self.domain, remaining)
        if not self.dry_run:
            await changes.forget_values(self.db, self.domain, before=before)

    async def note_reader(self) -> None:
        """Note the reader for which data is kept, if any."""
        if self.reader is not None and (self.result.deferred_versions or self.result.unread):
            self.result.reader, self.result.remedy = str(self.reader), self.reader.remedy
            self.result.reader_since = await changes.find_first_unread_at(self.db, self.domain, self.reader)

    async def sweep_bodies(self) -> None:
        """Delete the bodies that no version refers to."""
        after: bytes | None = b""
        while after is not None:
            swept, after = await versions.sweep_bodies(self.db, self.domain, after=after)
            self._add_counts(swept)

    async def finish(self) -> PruneStats:
        """Return the counts, with the size stored after pruning."""
        stored, quota = await self._compute_stored_bytes(), self.domain.settings.quota
        self.result.stored_bytes, self.result.excess_bytes = stored, max(0, stored - quota) if quota is not None else 0
        return self.result

    async def _compute_stored_bytes(self) -> int:
        """Return the stored size; in a dry run, the size that would remain after pruning."""
        stored_bytes = await versions.compute_stored_bytes(self.db, self.domain)
        return stored_bytes - self.result.freed_bytes if self.dry_run else stored_bytes

    async def _thin_chosen(self, chosen: Sequence[VersionRef]) -> ThinResult:
        thin_function = versions.preview_thinning if self.dry_run else versions.thin_versions
        thinned = await thin_function(self.db, self.domain, chosen)
        self._add_counts(thinned)
        return thinned

    def _add_counts(self, thinned: ThinResult) -> None:
        self.result.versions += thinned.versions
        self.result.bodies += thinned.bodies
        self.result.freed_bytes += thinned.freed_bytes
