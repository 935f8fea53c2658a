"""One pass over domains: versions thinned out, old visits packed, what is too old forgotten, the quota kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.domain import Domain
from crawler.core.http import PageKey
from crawler.prune.readers import remedy_of
from crawler.store import domains, report, retention
from crawler.store.database import Database
from crawler.store.retention import SizeEstimate, SlowestReader, Thinned, VersionName

SURELY_WITHIN = 0.6  # of the quota, as a sample tells it: the mean of 200 pages is hardly ever off by so much
COMPARED = 100  # chunks of events: what `recrawl duplicates` has to read of them before they go


@dataclass(frozen=True, slots=True)
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

    def with_thinned(self, thinned: Thinned) -> "Pruned":
        return replace(
            self,
            versions=self.versions + thinned.versions,
            bodies=self.bodies + thinned.bodies,
            freed_bytes=self.freed_bytes + thinned.freed_bytes,
        )


async def prune(
    db: Database,
    wanted: Sequence[Domain],
    *,
    at: datetime,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Pruned]:
    """Prune domains, one after the other; a dry run changes nothing, and says what would go.

    at: real time, for months that are over; ages count by each domain's last visit, so that one that nobody looks at
    loses nothing.  progress: called with the name of each domain.
    """
    found = []
    for domain in wanted:
        progress(domain.authority)
        # Others took their time: what is asked to be kept now is kept, and what was removed is not pruned.
        as_it_is = await domains.find(db, domain.authority)
        if as_it_is is not None:
            found.append(await prune_domain(db, as_it_is, at=at, dry_run=dry_run))
    if not dry_run:
        await retention.drop_empty_partitions(db, at=at)
    return found


async def prune_domain(db: Database, domain: Domain, *, at: datetime, dry_run: bool = False) -> Pruned:
    """Prune one domain. Raises BadInput if it was removed meanwhile."""
    last_visit_at = (await domains.status_of(db, domain, at=at)).last_visit_at
    done = Pruned(domain.authority)
    if last_visit_at is not None:
        reader = await retention.slowest_reader(db, domain)
        read_until = reader.position if reader is not None else None
        done = await _thin(db, domain, done, read_until=read_until, dry_run=dry_run)
        done = await _keep_quota(db, domain, done, read_until=read_until, dry_run=dry_run)
        done = await _visits(db, domain, done, last_visit_at=last_visit_at, dry_run=dry_run)
        done = await _changes(db, domain, done, last_visit_at=last_visit_at, reader=reader, dry_run=dry_run)
        done = await _with_reader(db, domain, done, reader)
        if not dry_run:
            done = await _sweep(db, domain, done)
    stored = await retention.stored_bytes(db, domain)
    return _with_stored(domain, done, stored - (done.freed_bytes if dry_run else 0))


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
    if await retention.stored_bytes(db, domain) <= quota:
        return None
    reader = await retention.slowest_reader(db, domain)
    read_until = reader.position if reader is not None else None
    done = await _thin(db, domain, Pruned(domain.authority), read_until=read_until, dry_run=False)
    done = await _keep_quota(db, domain, done, read_until=read_until, dry_run=False)
    done = await _with_reader(db, domain, done, reader)
    return _with_stored(domain, done, await retention.stored_bytes(db, domain))


async def foretold(db: Database, domain: Domain) -> SizeEstimate:
    """What the versions of a domain take, and what of it the next pruning frees, by a sample of its pages."""
    reader = await retention.slowest_reader(db, domain)
    read_until = reader.position if reader is not None else None
    return await retention.estimate(db, domain, domain.settings.retention, read_until=read_until)


def _with_stored(domain: Domain, done: Pruned, stored: int) -> Pruned:
    quota = domain.settings.quota
    return replace(done, stored_bytes=stored, exceeds=max(0, stored - quota) if quota is not None else 0)


async def _with_reader(db: Database, domain: Domain, done: Pruned, reader: SlowestReader | None) -> Pruned:
    """With the reader that holds something back, if any."""
    if reader is None or not (done.held or done.unread):
        return done
    since = await retention.first_unread_at(db, domain, reader)
    return replace(done, reader=str(reader), reader_since=since, remedy=remedy_of(reader))


async def _thin(db: Database, domain: Domain, done: Pruned, *, read_until: int | None, dry_run: bool) -> Pruned:
    take = retention.would_thin if dry_run else retention.thin
    after: PageKey | None = PageKey(b"")
    while after is not None:
        choice = await retention.versions_to_thin(
            db, domain, domain.settings.retention, after=after, read_until=read_until
        )
        done = replace(done.with_thinned(await take(db, domain, choice.names)), held=done.held + choice.held)
        after = choice.last
    return done


async def _keep_quota(db: Database, domain: Domain, done: Pruned, *, read_until: int | None, dry_run: bool) -> Pruned:
    quota = domain.settings.quota
    if quota is None:
        return done
    over = await retention.stored_bytes(db, domain) - (done.freed_bytes if dry_run else 0) - quota
    take = retention.would_thin if dry_run else retention.thin
    last, held = None, 0
    while over > 0:
        choice = await retention.oldest_versions(db, domain, after=last, read_until=read_until)
        names, last, held = choice.names, choice.last, held + choice.held
        if last is None:
            return replace(done, held=max(done.held, held))  # all but the newest were looked at
        chosen: list[VersionName] = []
        size = 0
        for name in names:
            if over <= size:
                break
            chosen.append(name)
            size += name.size
        thinned = await take(db, domain, chosen)
        over -= thinned.freed_bytes
        done = replace(done.with_thinned(thinned), over_quota=done.over_quota + thinned.versions)
        if chosen and len(chosen) < len(names):
            last = chosen[-1]  # bodies that others say as well freed less than they seemed to
            held -= choice.held  # these are looked at once more
    return done


async def _visits(db: Database, domain: Domain, done: Pruned, *, last_visit_at: datetime, dry_run: bool) -> Pruned:
    keep, forgotten, packed, merged = domain.settings.keep_visits, 0, 0, 0
    if keep is not None:
        before = last_visit_at - keep
        if dry_run:
            forgotten = await retention.count_visits(db, domain, before=before)
        else:
            while many := await retention.forget_visits(db, domain, before=before):
                forgotten += many
    waiting = await retention.visits_to_pack(db, domain)
    if waiting is not None and dry_run:
        packed = waiting.visits
    elif waiting is not None:
        chunk, after = await retention.pack_visits(db, domain, waiting)
        packed = chunk
        while after is not None:
            chunk, after = await retention.pack_visits(db, domain, waiting, after=after)
            packed += chunk
    for packs in await retention.packs_to_merge(db, domain):
        merged += packs.visits if dry_run else await retention.merge_packs(db, domain, packs)
    return replace(done, visits=forgotten, packed=packed, merged=merged)


async def _changes(
    db: Database,
    domain: Domain,
    done: Pruned,
    *,
    last_visit_at: datetime,
    reader: SlowestReader | None,
    dry_run: bool,
) -> Pruned:
    keep: timedelta | None = domain.settings.keep_changes
    if keep is None:
        return done
    if not dry_run:
        await report.stamp_feed(db, at=last_visit_at)
        await report.fill(db, domain, chunks=COMPARED)
    before = last_visit_at - keep
    old = await retention.changes_to_forget(db, domain, before=before)
    left = old
    if reader is not None:
        left = await retention.changes_to_forget(db, domain, before=before, read_until=reader.position)
    done = replace(done, changes=left.many)
    if reader is not None and left.many < old.many:
        done = replace(done, unread=old.many - left.many)
    while left.many and not dry_run:
        left = await retention.forget_changes(db, domain, left)
    return done


async def _sweep(db: Database, domain: Domain, done: Pruned) -> Pruned:
    after: bytes | None = b""
    while after is not None:
        swept, after = await retention.sweep_bodies(db, domain, after=after)
        done = done.with_thinned(swept)
    return done
