"""recrawl sync: an index of the pages brought in step once, or kept so while the feed grows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

from crawler.app.exports import Database, IndexSync, SyncRound, is_database, open_index
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, print_json_line, remark, say
from crawler.cli.progress import PagesWritten
from crawler.cli.session import Interrupts, with_database
from crawler.format.values import format_count


def sync_index(target: str, names: Sequence[str], *, anew: bool, follow: bool, as_json: bool) -> int:
    def document(found: SyncRound) -> dict[str, object]:
        return {"index": _without_password(target), "domains": found.done, "forgotten": found.forgotten}

    async def tell_rounds(index: IndexSync) -> None:
        async for found in index.follow(anew=anew, on_outage=lambda error: remark(f"{error}; it is asked again")):
            print_json_line(document(found)) if as_json else _show(found)

    async def work(db: Database, interrupts: Interrupts) -> SyncRound | None:
        async with open_index(db, target, names, progress=_progress) as index:
            if not follow:
                return await index.sync(anew=anew)
            await interrupts.or_stop(tell_rounds(index))
            return None

    found = with_database(work, patient=follow)
    if found is not None:
        print_json(document(found)) if as_json else _show(found)
    return DONE


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    with PagesWritten() as shown:
        yield shown.advance


def _show(found: SyncRound) -> None:
    for name, synced in found.done.items():
        how = "all pages read" if synced.is_anew else "what has changed"
        say(f"{name}: {format_count(synced.put, 'page')} put, {synced.removed:,} taken out ({how})")
    for name, removed in found.forgotten.items():
        say(f"{name}: {format_count(removed, 'page')} taken out; it is not registered any more")
    if not found.done and not found.forgotten:
        remark("No domain is registered: recrawl crawl URL")


def _without_password(target: str) -> str:
    parts = urlsplit(target)
    if not is_database(target) or parts.password is None:
        return target
    return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1)))
