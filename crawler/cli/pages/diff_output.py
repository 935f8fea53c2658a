"""recrawl diff: what differs between two versions of a page."""

from collections import Counter
from datetime import UTC, datetime

from rich.text import Text

from crawler.app.pages import (
    BlockDiff,
    BlockKind,
    BlockStatus,
    Hunk,
    PageDiff,
    VersionContent,
    WantedVersion,
    compare_versions,
)
from crawler.app.running.maintenance import check_plugins
from crawler.cli.marked import joined, marked, say_beneath
from crawler.cli.output import print_json, remark, say, say_heading
from crawler.cli.session import settings, with_database
from crawler.format.values import format_count, format_when

SIGNS = {
    BlockStatus.SAME: " ",
    BlockStatus.CHANGED: "~",
    BlockStatus.ADDED: "+",
    BlockStatus.REMOVED: "-",
    BlockStatus.MOVED: ">",
}
TOLD = (BlockStatus.CHANGED, BlockStatus.ADDED, BlockStatus.REMOVED, BlockStatus.MOVED)
INDENT = 2


def page_diff(text: str, *, before: WantedVersion, after: WantedVersion, context: int, as_json: bool) -> None:
    now = datetime.now(UTC)
    check_plugins(settings())
    found = with_database(
        lambda db, _: compare_versions(db, settings(), text, before=before, after=after, context=context, now=now)
    )
    new = found.after
    if as_json:
        print_json({"url": new.url, "from": found.before.version, "to": new.version, "diff": found.diff})
    else:
        _show(found.before, new, found.diff, now=now)
        remark(
            f"Next: recrawl versions {new.url}; recrawl show {new.url} --version {new.version.number}; to hear no more "
            f"of a piece: recrawl rules add {found.domain.authority} / --ignore-text 'WORDS' (or --ignore SELECTOR)"
        )


def _show(old: VersionContent, new: VersionContent, found: PageDiff, *, now: datetime) -> None:
    say_heading(new.version.title or new.url)
    if new.version.title:
        say(new.url)
    for sign, side in (("-", old), ("+", new)):
        say(f"{sign} version {side.version.number}, {format_when(side.version.at, now=now)}")
    if not found:
        say("Nothing that is shown or linked differs")
        return
    say(_summary(found))
    for hunk in found.hunks:
        _show_hunk(hunk)
    _show_skipped(found.skipped)


def _summary(found: PageDiff) -> str:
    news = Counter(block.status for block in found.changed if block.is_news)
    noise = sum(not block.is_news for block in found.changed)
    told = joined([f"{news[status]:,} {status.value}" for status in TOLD if news[status]])
    beside = f"; {format_count(noise, 'block')} of known noise or left out by a rule" if noise else ""
    return f"Blocks: {told or 'no news'}, {found.counts[BlockStatus.SAME]:,} same{beside}"


def _show_hunk(hunk: Hunk) -> None:
    _show_skipped(hunk.skipped)
    for block in hunk.blocks:
        if block.status is BlockStatus.SAME and block.part is not BlockKind.TEXT:
            continue  # where an unchanged link leads is no context that anybody reads
        _show_block(block)


def _show_skipped(many: int) -> None:
    if many:
        say_beneath(Text(f"… {format_count(many, 'block')} the same", "dim"), indent=INDENT)


def _show_block(block: BlockDiff) -> None:
    is_same = block.status is BlockStatus.SAME
    line = Text.assemble((f"{SIGNS[block.status]} ", "" if is_same else "bold"))
    if block.part is not BlockKind.TEXT:
        line.append(f"{block.part.value}: ", "dim")
    words = marked(block.runs)
    if is_same:
        words.stylize("dim")
    line.append_text(words)
    if block.status is BlockStatus.MOVED:
        line.append("  (moved here)", "dim")
    if not is_same and not block.is_news:
        line.append("  (noise)", "dim")
    say_beneath(line, indent=INDENT, hanging=2)
