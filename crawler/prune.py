"""What is kept of the past, applied: `prune` goes through the domains, chunk by chunk.

Versions are thinned out, old visits packed, and what is too old is forgotten. `keep_quota` does for one domain what
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
from crawler.store.retention.estimate import SizeEstimate, estimate
from crawler.store.retention.versions import Thinned, VersionName

SURELY_WITHIN = 0.6  # of the quota, as a sample tells it: the mean of 200 pages is hardly ever off by so much
COMPARED = 100  # chunks of events: what `recrawl duplicates` has to read of them before they go


@dataclass(slots=True)
class Pruned:
    """What was taken of a domain, or with a dry run what would be.

    versions: thinned out, of which `over_quota` are beyond what the settings ask, since the quota was exceeded.
    bodies: that no version says any more.  freed_bytes: of texts and bodies, as they were stored.
    packed: visits.  merged: visits whose packs of a month were merged.  visits, changes: forgotten.
    unread: changes that are old enough to be forgotten and stay, since `reader` has not read them.
    held: versions that stay for it, beyond what the settings keep, and of a domain above its quota beyond the newest.
    reader: whoever holds something back; empty where nobody does.  reader_since: when the oldest change was found that
    it has not read.  remedy: what a person can do about it.
    stored_bytes: that texts and bodies take afterwards.
    exceeds: bytes above the quota that remain, since a page's newest version is never taken, nor one to be read yet.
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
    held: int = 0
    reader: str = ""
    reader_since: datetime | None = None
    remedy: str = ""
    stored_bytes: int = 0
    exceeds: int = 0

    @property
    def held_back(self) -> str:
        """What stays for a reader, for whom, since when, and the next step, as a sentence; empty where nothing does."""
        if not self.reader:
            return ""
        many = ((self.held, "versions"), (self.unread, "old changes"))
        what = " and ".join(f"{count:,} {noun}" for count, noun in many if count)
        since = f" since {self.reader_since:%Y-%m-%d %H:%M %Z}" if self.reader_since else ""
        return f"{what} stay for {self.reader}, which has not read what was found{since} ({self.remedy})"


async def prune(db: Database, wanted: Sequence[Domain], *, at: datetime, dry_run: bool = False) -> list[Pruned]:
    """Prune domains, one after the other; a dry run changes nothing, and says what would go.

    at: real time, for months that are over; ages count by each domain's last visit, so that one that nobody looks at
    loses nothing.
    """
    found = []
    for domain in wanted:
        # Others took their time: what is asked to be kept now is kept, and what was removed is not pruned.
        as_it_is = await domains.find(db, domain.authority)
        if as_it_is is not None:
            found.append(await prune_domain(db, as_it_is, at=at, dry_run=dry_run))
    if not dry_run:
        await visits.drop_empty_partitions(db, at=at)
    return found


async def prune_domain(db: Database, domain: Domain, *, at: datetime, dry_run: bool = False) -> Pruned:
    """Prune one domain. Raises BadInput if it was removed meanwhile."""
    last_visit_at = (await domains.status_of(db, domain, at=at)).last_visit_at
    pruning = await _begin(db, domain, dry_run=dry_run)
    if last_visit_at is not None:
        await pruning.thin()
        await pruning.keep_quota()
        await pruning.forget_and_pack_visits(last_visit_at)
        await pruning.forget_changes(last_visit_at)
        await pruning.note_reader()
        if not dry_run:
            await pruning.sweep()
    return await pruning.finish()


async def keep_quota(db: Database, domain: Domain) -> Pruned | None:
    """Thin out the versions of a domain that takes more than its quota; None where it does not, or has none.

    First as its settings say, then the oldest ones. A domain with room to spare is told by a sample of its pages, so
    that this costs little and can be done every hour.
    """
    quota = domain.settings.quota
    if quota is None:
        return None
    about = await foretold(db, domain)
    if about.stored_bytes < (1.0 if about.is_exact else SURELY_WITHIN) * quota:
        return None
    if await versions.stored_bytes(db, domain) <= quota:
        return None
    pruning = await _begin(db, domain, dry_run=False)
    await pruning.thin()
    await pruning.keep_quota()
    await pruning.note_reader()
    return await pruning.finish()


async def foretold(db: Database, domain: Domain) -> SizeEstimate:
    """What the versions of a domain take, and what of it the next pruning frees, by a sample of its pages."""
    read_until = (await _begin(db, domain, dry_run=True)).read_until
    return await estimate(db, domain, read_until=read_until)


async def _begin(db: Database, domain: Domain, *, dry_run: bool) -> "_Pruning":
    reader = await changes.slowest_reader(db, domain)
    return _Pruning(db, domain, Pruned(domain.authority), reader, dry_run=dry_run)


@dataclass(slots=True)
class _Pruning:
    """The pruning of one domain, step by step. reader: who must read all changes and has read least of them."""

    db: Database
    domain: Domain
    done: Pruned
    reader: SlowestReader | None
    dry_run: bool

    @property
    def read_until(self) -> int | None:
        return self.reader.position if self.reader is not None else None

    async def thin(self) -> None:
        """Thin out versions as the settings say."""
        after: PageKey | None = PageKey(b"")
        while after is not None:
            choice = await versions.versions_to_thin(self.db, self.domain, after=after, read_until=self.read_until)
            await self._take(choice.names)
            self.done.held += choice.held
            after = choice.last

    async def keep_quota(self) -> None:
        """Thin out the oldest versions until the rest is within the quota."""
        quota = self.domain.settings.quota
        if quota is None:
            return
        over, last, held = await self._stored_bytes() - quota, None, 0
        while over > 0:
            choice = await versions.oldest_versions(self.db, self.domain, after=last, read_until=self.read_until)
            last, held = choice.last, held + choice.held
            if last is None:
                self.done.held = max(self.done.held, held)  # all but the newest were looked at
                return
            sizes = accumulate((name.size for name in choice.names), initial=0)
            chosen = [name for name, before in zip(choice.names, sizes, strict=False) if before < over]
            thinned = await self._take(chosen)
            over -= thinned.freed_bytes
            self.done.over_quota += thinned.versions
            if chosen and len(chosen) < len(choice.names):
                last = chosen[-1]  # bodies that others say as well freed less than they seemed to
                held -= choice.held  # these are looked at once more

    async def forget_and_pack_visits(self, last_visit_at: datetime) -> None:
        """Forget visits that are too old, pack old ones, and merge the packs of months that are over."""
        db, domain, done, keep = self.db, self.domain, self.done, self.domain.settings.keep_visits
        if keep is not None and self.dry_run:
            done.visits = await visits.count_visits(db, domain, before=last_visit_at - keep)
        elif keep is not None:
            while many := await visits.forget_visits(db, domain, before=last_visit_at - keep):
                done.visits += many
        waiting = await visits.visits_to_pack(db, domain)
        if waiting is not None and self.dry_run:
            done.packed = waiting.visits
        elif waiting is not None:
            done.packed, after = await visits.pack_visits(db, domain, waiting)
            while after is not None:
                chunk, after = await visits.pack_visits(db, domain, waiting, after=after)
                done.packed += chunk
        for packs in await visits.packs_to_merge(db, domain):
            done.merged += packs.visits if self.dry_run else await visits.merge_packs(db, domain, packs)

    async def forget_changes(self, last_visit_at: datetime) -> None:
        """Forget changes that are too old, unless somebody has still to read them."""
        keep = self.domain.settings.keep_changes
        if keep is None:
            return
        if not self.dry_run:
            await report.stamp_feed(self.db, at=last_visit_at)
            await report.fill(self.db, self.domain, chunks=COMPARED)
        before = last_visit_at - keep
        old = left = await changes.changes_to_forget(self.db, self.domain, before=before)
        if self.reader is not None:
            left = await changes.changes_to_forget(self.db, self.domain, before=before, read_until=self.read_until)
        self.done.changes, self.done.unread = len(left), len(old) - len(left)
        while left and not self.dry_run:
            left = await changes.forget_changes(self.db, self.domain, left)

    async def note_reader(self) -> None:
        """Note the reader that holds something back, if any."""
        if self.reader is not None and (self.done.held or self.done.unread):
            self.done.reader, self.done.remedy = str(self.reader), self.reader.remedy
            self.done.reader_since = await changes.first_unread_at(self.db, self.domain, self.reader)

    async def sweep(self) -> None:
        """Take the bodies that no version says."""
        after: bytes | None = b""
        while after is not None:
            swept, after = await versions.sweep_bodies(self.db, self.domain, after=after)
            self._count(swept)

    async def finish(self) -> Pruned:
        """Return what was done, with what is stored afterwards."""
        stored, quota = await self._stored_bytes(), self.domain.settings.quota
        self.done.stored_bytes, self.done.exceeds = stored, max(0, stored - quota) if quota is not None else 0
        return self.done

    async def _stored_bytes(self) -> int:
        """Return what texts and bodies take; in a dry run what they would."""
        return await versions.stored_bytes(self.db, self.domain) - (self.done.freed_bytes if self.dry_run else 0)

    async def _take(self, names: Sequence[VersionName]) -> Thinned:
        thin = versions.would_thin if self.dry_run else versions.thin
        thinned = await thin(self.db, self.domain, names)
        self._count(thinned)
        return thinned

    def _count(self, thinned: Thinned) -> None:
        self.done.versions += thinned.versions
        self.done.bodies += thinned.bodies
        self.done.freed_bytes += thinned.freed_bytes
