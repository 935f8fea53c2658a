"""recrawl sync: an index of the pages brought in step once, or kept so while the feed grows."""

from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from crawler.app.registration import domain_named
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, print_json_line, remark, say
from crawler.cli.progress import PagesWritten
from crawler.cli.session import Interrupts, with_database
from crawler.core.domain import Domain
from crawler.errors import StoreUnavailable
from crawler.export import PostgresIndex, SqliteIndex, Synced, called, in_thread
from crawler.export import sync as bring_in_step
from crawler.format.values import format_count
from crawler.store import domains, report
from crawler.store.database import Database


@dataclass(frozen=True, slots=True)
class SyncAsked:
    """What a person asks for. target: a file, or the URL of a database.  names: of domains; none for all.

    anew: read all pages, once.  follow: go on until the command is told to stop.
    """

    target: str
    names: Sequence[str]
    anew: bool = False
    follow: bool = False


@dataclass(frozen=True, slots=True)
class SyncRound:
    """What one round did, by domain. forgotten: pages taken out of domains that are not registered any more."""

    done: dict[str, Synced]
    forgotten: dict[str, int]

    @property
    def is_news(self) -> bool:
        """Whether the index is another one now."""
        return bool(self.forgotten) or any(each.put or each.removed for each in self.done.values())


@dataclass(slots=True)
class Keeper:
    """Brings one index in step, again and again. names: of the domains; empty for all.

    seen: where the feed ended when the last round began; None before the first.
    """

    db: Database
    index: SqliteIndex | PostgresIndex
    thread: Executor
    names: Collection[str]
    seen: int | None = field(default=None, init=False)

    async def round(self, *, anew: bool = False) -> SyncRound:
        """Put what has changed since the round before into the index; the first looks at every domain."""
        await report.stamp_feed(self.db, at=datetime.now(UTC))
        end = await report.end_of_feed(self.db)
        every = [listed.domain for listed in await domains.every(self.db)]
        wanted = await self._changed([each for each in every if not self.names or each.authority in self.names], end)
        done: dict[str, Synced] = {}
        with PagesWritten() as progress:
            for each in wanted:
                done[each.authority] = await bring_in_step(
                    self.db, each, self.index, anew=anew, progress=progress.advance, thread=self.thread
                )
        gone = set(await called(self.thread, self.index.domains)) - {each.authority for each in every}
        forgotten = {name: await called(self.thread, self.index.forget, name) for name in sorted(gone)}
        self.seen = end
        return SyncRound(done, forgotten)

    async def _changed(self, wanted: list[Domain], end: int) -> list[Domain]:
        """The domains, of some, that the feed has told of since the last round."""
        if self.seen is None or end < self.seen:  # the first round, or another copy of the database
            return wanted
        told = await report.domains_with_changes(self.db, after=self.seen) if end > self.seen else frozenset()
        return [each for each in wanted if each.id in told]


def sync_index(asked: SyncAsked, *, as_json: bool) -> int:
    async def work(db: Database, interrupts: Interrupts) -> SyncRound | None:
        names = {(await domain_named(db, name)).authority for name in asked.names}
        async with in_thread(_index(asked.target)) as (index, thread):
            keeper = Keeper(db, index, thread, names)
            if not asked.follow:
                return await keeper.round(anew=asked.anew)
            await _follow(keeper, asked, interrupts, as_json=as_json)
            return None

    found = with_database(work, patient=asked.follow)
    if found is not None and as_json:
        print_json(_document(asked, found))
    elif found is not None:
        _show(found)
    return DONE


async def _follow(keeper: Keeper, asked: SyncAsked, interrupts: Interrupts, *, as_json: bool) -> None:
    """Go on until told to stop. A round is given up between two commits, and the next start goes on from there."""
    anew, is_first = asked.anew, True
    async with report.announcements(keeper.db) as announced:
        while not interrupts.stop.is_set():
            try:
                found = await interrupts.or_stop(keeper.round(anew=anew))
            except StoreUnavailable as error:
                remark(f"{error}; it is asked again")
                found = None
            if found is not None:
                if is_first or found.is_news:
                    print_json_line(_document(asked, found)) if as_json else _show(found)
                anew, is_first = False, False
            await interrupts.or_stop(announced.wait())


def _document(asked: SyncAsked, found: SyncRound) -> dict[str, object]:
    return {"index": _shown_target(asked.target), "domains": found.done, "forgotten": found.forgotten}


def _show(found: SyncRound) -> None:
    for name, synced in found.done.items():
        how = "all pages read" if synced.is_anew else "what has changed"
        say(f"{name}: {format_count(synced.put, 'page')} put, {synced.removed:,} taken out ({how})")
    for name, removed in found.forgotten.items():
        say(f"{name}: {format_count(removed, 'page')} taken out; it is not registered any more")
    if not found.done and not found.forgotten:
        remark("No domain is registered: recrawl crawl URL")


def _index(target: str) -> SqliteIndex | PostgresIndex:
    return PostgresIndex(target) if _is_database(target) else SqliteIndex(Path(target))


def _is_database(target: str) -> bool:
    return target.startswith(("postgresql://", "postgres://"))


def _shown_target(target: str) -> str:
    """The index without a password."""
    parts = urlsplit(target)
    if not _is_database(target) or parts.password is None:
        return target
    return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1)))
