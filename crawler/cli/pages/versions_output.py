"""recrawl versions, show and diff: the versions of a page, what one of them said, and what differs between two."""

import sys
from collections import Counter
from datetime import UTC, datetime

from rich.text import Text

from crawler.app import pages
from crawler.app.running.maintenance import check_plugins
from crawler.cli.marked import joined, marked, say_beneath
from crawler.cli.output import out, print_json, printable, remark, say, say_heading, show_facts, show_rows
from crawler.cli.session import settings, with_database
from crawler.errors import CrawlerError
from crawler.format.kinds import KIND_WORDS
from crawler.format.values import format_bytes, format_count, format_instant, format_share, format_span, format_when
from crawler.json_lines import values_of

SIGNS = {
    pages.BlockStatus.SAME: " ",
    pages.BlockStatus.CHANGED: "~",
    pages.BlockStatus.ADDED: "+",
    pages.BlockStatus.REMOVED: "-",
    pages.BlockStatus.MOVED: ">",
}
TOLD = (pages.BlockStatus.CHANGED, pages.BlockStatus.ADDED, pages.BlockStatus.REMOVED, pages.BlockStatus.MOVED)
INDENT = 2


def versions(text: str, *, top: int, why: bool, as_json: bool) -> None:
    now = datetime.now(UTC)
    url, found = with_database(lambda db, _: pages.list_versions(db, text, max_count=top, now=now))
    if as_json:
        print_json({"url": url, "versions": found})
        return
    say_heading(f"{format_count(found[0].number, 'version')} of {url}")
    rows = [_version_row(version, why=why) for version in found]
    show_rows(rows, right=["version", "amount", "distance", "size"])
    if len(found) > 1:
        remark(f"Next: recrawl diff {url}; recrawl show {url} --version {found[-1].number}")
    else:
        remark(f"Next: recrawl show {url}")


def _version_row(version: pages.PageVersion, *, why: bool) -> dict[str, str]:
    distance = f"{version.distance_bits} bits" if version.distance_bits is not None else "-"
    return {
        "version": str(version.number),
        "seen": format_instant(version.at),
        "held for": format_span(version.until - version.at) if version.until else "to this day",
        "what": KIND_WORDS[version.change] if version.change else "list",
        "amount": format_share(version.amount),
        **({"parts": " ".join(version.parts), "distance": distance} if why else {}),
        "size": format_bytes(version.body_bytes) if version.body_bytes is not None else "not kept",
        "title": version.title,
    }


def show_page(text: str, *, wanted: pages.WantedVersion, form: str | None, as_json: bool) -> None:
    """Show one version of a page. form: text, html or headers; None for facts and text."""
    now = datetime.now(UTC)
    found = with_database(lambda db, _: pages.find_version(db, text, wanted, now=now))
    if as_json:
        html = None if found.body is None else found.body.decode(errors="replace")
        print_json(values_of(found) | {"text": found.text, "html": html})
    elif form == "html":
        _write_body(found)
    elif form == "headers":
        _show_headers(found)
    elif form == "text":
        say(found.text)
    else:
        _show_facts(found, now=now)
        say("")
        for line in (found.text or "(no text)").split("\n"):
            say_beneath(Text(printable(line)), indent=0)
        others = f"recrawl diff {found.url} --to {found.version.number}; recrawl versions {found.url}"
        remark(f"Next: {others if found.version.number > 1 else f'recrawl explain {found.url}'}")


def _write_body(found: pages.VersionContent) -> None:
    """The body byte by byte where a program reads it; without what steers a terminal where a person does."""
    if found.body is None:
        raise CrawlerError(
            f"the body of version {found.version.number} of {found.url} is not kept: --text shows its text"
        )
    if out().is_terminal or not hasattr(sys.stdout, "buffer"):
        say(found.body.decode(errors="replace"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(found.body)


def _show_headers(found: pages.VersionContent) -> None:
    kept = found.headers
    show_facts(
        [
            ("Status", str(kept.status) if kept.status is not None else "not kept"),
            ("Content-Type", kept.content_type),
            ("ETag", kept.etag or ""),
            ("Last-Modified", kept.last_modified or ""),
            *kept.others,
        ]
    )
    if not kept.others:
        remark("No other headers of this version are kept")
    remark("Cookies, and what else lets somebody in, are never kept; ETag and Last-Modified of the newest answer alone")


def _show_facts(found: pages.VersionContent, *, now: datetime) -> None:
    version = found.version
    until = f", until {format_instant(version.until)}" if version.until else ""
    since = f"since {format_when(found.state_at, now=now)}" if found.state_at else "for longer than the feed goes back"
    state = "" if found.state is pages.State.KNOWN else f"{found.state.value} {since}"
    kept = format_bytes(version.body_bytes) if version.body_bytes is not None else "the body is not kept"
    rendered = ", as a browser made it" if version.is_rendered else ""
    show_facts(
        [
            ("URL", found.url),
            ("Title", version.title),
            ("Version", f"{version.number}, seen {format_when(version.at, now=now)}{until}"),
            ("State", state and f"{state}; this is what it said last"),
            ("Kept", f"{kept}, {version.content_type or 'no content type'}{rendered}"),
        ]
    )


def page_diff(
    text: str, *, before: pages.WantedVersion, after: pages.WantedVersion, context: int, as_json: bool
) -> None:
    now = datetime.now(UTC)
    check_plugins(settings())
    found = with_database(
        lambda db, _: pages.compare_versions(db, text, before=before, after=after, context=context, now=now)
    )
    new = found.after
    if as_json:
        print_json({"url": new.url, "from": found.before.version, "to": new.version, "diff": found.diff})
    else:
        _show_diff(found.before, new, found.diff, now=now)
        remark(
            f"Next: recrawl versions {new.url}; recrawl show {new.url} --version {new.version.number}; to hear no more "
            f"of a piece: recrawl rules add {found.domain.authority} / --ignore-text 'WORDS' (or --ignore SELECTOR)"
        )


def _show_diff(old: pages.VersionContent, new: pages.VersionContent, found: pages.PageDiff, *, now: datetime) -> None:
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
        _show_skipped(hunk.skipped)
        for block in hunk.blocks:
            # Where an unchanged link leads is no context that anybody reads.
            if block.status is not pages.BlockStatus.SAME or block.part is pages.BlockKind.TEXT:
                _show_block(block)
    _show_skipped(found.skipped)


def _summary(found: pages.PageDiff) -> str:
    news = Counter(block.status for block in found.changed if block.is_news)
    noise = sum(not block.is_news for block in found.changed)
    told = joined([f"{news[status]:,} {status.value}" for status in TOLD if news[status]])
    beside = f"; {format_count(noise, 'block')} of known noise or left out by a rule" if noise else ""
    return f"Blocks: {told or 'no news'}, {found.counts[pages.BlockStatus.SAME]:,} same{beside}"


def _show_skipped(many: int) -> None:
    if many:
        say_beneath(Text(f"… {format_count(many, 'block')} the same", "dim"), indent=INDENT)


def _show_block(block: pages.BlockDiff) -> None:
    is_same = block.status is pages.BlockStatus.SAME
    line = Text.assemble((f"{SIGNS[block.status]} ", "" if is_same else "bold"))
    if block.part is not pages.BlockKind.TEXT:
        line.append(f"{block.part.value}: ", "dim")
    words = marked(block.runs)
    if is_same:
        words.stylize("dim")
    line.append_text(words)
    if block.status is pages.BlockStatus.MOVED:
        line.append("  (moved here)", "dim")
    if not is_same and not block.is_news:
        line.append("  (noise)", "dim")
    say_beneath(line, indent=INDENT, hanging=2)
