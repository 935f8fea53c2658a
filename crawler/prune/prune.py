"""One pass over domains: versions thinned out, old visits packed, what is too old forgotten, the quota kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.domain import Domain
from crawler.core.http import PageKey
from crawler.store import domains, report, retention
from crawler.store.database import Database
from crawler.store.retention import Thinned, VersionName

COMPARED = 100  # chunks of events: what `recrawl duplicates` has to read of them before they go


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was taken of a domain, or with a dry run what would be.

    versions: thinned out, of which `over_quota` are beyond what the settings ask, since the quota was exceeded.
    bodies: that no version says any more.  freed_bytes: of texts and bodies, as they were stored.
    packed: visits.  visits, changes: forgotten.  stored_bytes: that texts and bodies take afterwards.
    exceeds: bytes above the quota that remain, since a page's newest version is never taken.
    """

    domain: str
    versions: int = 0
    over_quota: int = 0
    bodies: int = 0
    freed_bytes: int = 0
    packed: int = 0
    visits: int = 0
    changes: int = 0
    stored_bytes: int = 0
    exceeds: int = 0

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
        found.append(await prune_domain(db, domain, at=at, dry_run=dry_run))
    if not dry_run:
        await retention.drop_empty_partitions(db, at=at)
    return found


async def prune_domain(db: Database, domain: Domain, *, at: datetime, dry_run: bool = False) -> Pruned:
    """Prune one domain."""
    last_visit_at = (await domains.status_of(db, domain, at=at)).last_visit_at
    done = Pruned(domain.authority)
    if last_visit_at is not None:
        read_until = await retention.lowest_cursor(db, domain)
        done = await _thin(db, domain, done, read_until=read_until, dry_run=dry_run)
        done = await _keep_quota(db, domain, done, read_until=read_until, dry_run=dry_run)
        done = await _visits(db, domain, done, last_visit_at=last_visit_at, dry_run=dry_run)
        done = await _changes(db, domain, done, last_visit_at=last_visit_at, read_until=read_until, dry_run=dry_run)
        if not dry_run:
            done = await _sweep(db, domain, done)
    quota = domain.settings.quota
    stored = await retention.stored_bytes(db, domain)
    stored -= done.freed_bytes if dry_run else 0
    return replace(done, stored_bytes=stored, exceeds=max(0, stored - quota) if quota is not None else 0)


async def _thin(db: Database, domain: Domain, done: Pruned, *, read_until: int | None, dry_run: bool) -> Pruned:
    take = retention.would_thin if dry_run else retention.thin
    after: PageKey | None = PageKey(b"")
    while after is not None:
        names, after = await retention.versions_to_thin(
            db, domain, domain.settings.retention, after=after, read_until=read_until
        )
        done = done.with_thinned(await take(db, domain, names))
    return done


async def _keep_quota(db: Database, domain: Domain, done: Pruned, *, read_until: int | None, dry_run: bool) -> Pruned:
    quota = domain.settings.quota
    if quota is None:
        return done
    over = await retention.stored_bytes(db, domain) - (done.freed_bytes if dry_run else 0) - quota
    take = retention.would_thin if dry_run else retention.thin
    last = None
    while over > 0:
        names, last = await retention.oldest_versions(db, domain, after=last, read_until=read_until)
        if last is None:
            break
        chosen: list[VersionName] = []
        for name in names:
            if over <= sum(each.size for each in chosen):
                break
            chosen.append(name)
        thinned = await take(db, domain, chosen)
        over -= thinned.freed_bytes
        done = replace(done.with_thinned(thinned), over_quota=done.over_quota + thinned.versions)
        if chosen and len(chosen) < len(names):
            last = chosen[-1]  # bodies that others say as well freed less than they seemed to
    return done


async def _visits(db: Database, domain: Domain, done: Pruned, *, last_visit_at: datetime, dry_run: bool) -> Pruned:
    keep, forgotten, packed = domain.settings.keep_visits, 0, 0
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
    return replace(done, visits=forgotten, packed=packed)


async def _changes(
    db: Database, domain: Domain, done: Pruned, *, last_visit_at: datetime, read_until: int | None, dry_run: bool
) -> Pruned:
    keep: timedelta | None = domain.settings.keep_changes
    if keep is None:
        return done
    if not dry_run:
        await report.stamp_feed(db, at=last_visit_at)
        await report.fill(db, domain, chunks=COMPARED)
    left = await retention.changes_to_forget(db, domain, before=last_visit_at - keep, read_until=read_until)
    many = left.many
    while left.many and not dry_run:
        left = await retention.forget_changes(db, domain, left)
    return replace(done, changes=many)


async def _sweep(db: Database, domain: Domain, done: Pruned) -> Pruned:
    after: bytes | None = b""
    while after is not None:
        swept, after = await retention.sweep_bodies(db, domain, after=after)
        done = done.with_thinned(swept)
    return done
