"""Output of recrawl versions, show, diff and values: the versions of a page, their content, differences and values."""

import sys
from collections import Counter
from datetime import UTC, datetime

from rich.text import Text

from crawler.app import page_values, pages
from crawler.app.pages import BlockStatus
from crawler.app.running.maintenance import check_plugins
from crawler.cli.marked_text import join_parts, mark_runs, say_indented
from crawler.cli.output import (
    get_stdout,
    make_printable,
    print_json,
    print_listing,
    remark,
    say,
    say_heading,
    show_facts,
    show_rows,
)
from crawler.cli.session import run_on_database, settings
from crawler.errors import CrawlerError
from crawler.format.reasons import FINDING_WORDS, format_reading
from crawler.format.values import format_bytes, format_count, format_instant, format_share, format_span, format_when
from crawler.json_lines import get_field_values

# The sign of each reported status, in the order of the summary.
SIGNS = {BlockStatus.CHANGED: "~", BlockStatus.ADDED: "+", BlockStatus.REMOVED: "-", BlockStatus.MOVED: ">"}
INDENT = 2


def show_versions(text: str, *, top: int, why: bool, as_json: bool) -> None:
    now = datetime.now(UTC)
    url, listed = run_on_database(lambda db, _: pages.list_versions(db, text, max_count=top, now=now))
    if as_json:
        print_json({"url": url, "versions": listed})
        return
    say_heading(f"{format_count(listed[0].number, 'version')} of {url}")
    rows = [_format_version_row(version, why=why) for version in listed]
    show_rows(rows, right=["version", "magnitude", "distance", "body size"])
    more = f"recrawl diff {url}; recrawl show {url} --version {listed[-1].number}"
    remark(f"Next: {more if len(listed) > 1 else f'recrawl show {url}'}")


def _format_version_row(version: pages.PageVersion, *, why: bool) -> dict[str, str]:
    distance = f"{version.distance_bits} bits" if version.distance_bits is not None else "-"
    return {
        "version": str(version.number),
        "since": format_instant(version.at),
        "lasted": format_span(version.until - version.at) if version.until else "current",
        "change": version.change or "list",  # sitemaps and feeds have no kind of change
        "magnitude": format_share(version.magnitude),
        **({"parts": " ".join(version.parts), "distance": distance} if why else {}),
        "body size": format_bytes(version.body_bytes) if version.body_bytes is not None else "not kept",
        "title": version.title,
    }


def show_values(text: str, *, name: str, top: int, as_json: bool) -> None:
    url, readings, _ = run_on_database(lambda db, _: page_values.read_values(db, text, name=name, max_count=top))
    empty = f"No value of {url} has been read yet: recrawl rules list"
    print_listing({"url": url, "values": readings}, map(_format_value_row, readings), empty=empty, as_json=as_json)


def _format_value_row(reading: page_values.ValueReading) -> dict[str, str]:
    finding = FINDING_WORDS[reading.finding] if reading.number is not None else ""
    return {
        "name": reading.name,
        "since": format_instant(reading.at),
        "value": format_reading(reading.number, reading.unit, reading.finding),
        "version": str(reading.version),
        "remark": finding,
    }


def show_page(text: str, *, selector: pages.VersionSelector, form: str | None, as_json: bool) -> None:
    """Print one version of a page. form: content, text, html or headers; None for facts and content."""
    now = datetime.now(UTC)
    content = run_on_database(lambda db, _: pages.find_version(db, text, selector, now=now))
    if as_json:
        html = None if content.body is None else content.body.decode(errors="replace")
        print_json(get_field_values(content) | {"content": content.content, "text": content.text, "html": html})
    elif form == "html":
        _write_body(content)
    elif form == "headers":
        _show_headers(content)
    elif form in {"content", "text"}:
        say(content.content if form == "content" else content.text)
    else:
        _show_facts(content, now=now)
        say("")
        for line in (content.content or "(no text)").split("\n"):
            say_indented(Text(make_printable(line)), indent=0)
        other_commands = f"recrawl diff {content.url} --to {content.version.number}; recrawl versions {content.url}"
        remark(f"Next: {other_commands if content.version.number > 1 else f'recrawl explain {content.url}'}")


def _write_body(content: pages.VersionContent) -> None:
    """Write the body as the exact bytes to a pipe, or as text without control characters to a terminal."""
    if content.body is None:
        version = f"version {content.version.number} of {content.url}"
        raise CrawlerError(f"the body of {version} is no longer stored: use --text")
    if get_stdout().is_terminal or not hasattr(sys.stdout, "buffer"):
        say(content.body.decode(errors="replace"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content.body)


def _show_headers(content: pages.VersionContent) -> None:
    headers = content.headers
    show_facts(
        [
            ("Status", str(headers.status) if headers.status is not None else "not kept"),
            ("Content-Type", headers.content_type),
            ("ETag", headers.etag or ""),
            ("Last-Modified", headers.last_modified or ""),
            *headers.others,
        ]
    )
    if not headers.others:
        remark("No other headers of this version are stored")
    remark(
        "Credentials such as cookies are never stored. ETag and Last-Modified are stored for the newest response only"
    )


def _show_facts(content: pages.VersionContent, *, now: datetime) -> None:
    version = content.version
    until = f", until {format_instant(version.until)}" if version.until else ""
    since = (
        format_when(content.state_at, now=now)
        if content.state_at
        else "an unknown time before the oldest stored change"
    )
    state = "" if content.state is pages.State.FETCHED else f"{content.state.value} since {since}"
    confidence = format_share(content.confidence)
    stored = format_bytes(version.body_bytes) if version.body_bytes is not None else "the body is not stored"
    rendered = ", rendered in a browser" if version.is_rendered else ""
    show_facts(
        [
            ("URL", content.url),
            ("Title", version.title),
            ("Version", f"{version.number}, since {format_when(version.at, now=now)}{until}"),
            ("State", state and f"{state}; this is its last version"),
            ("Body", f"{stored}, {version.content_type or 'no content type'}{rendered}"),
            ("Author", str(content.metadata.get("author", ""))),
            ("Published", str(content.metadata.get("published", ""))),
            ("Content", f"{format_bytes(len(content.content.encode()))}, chosen with {confidence} confidence"),
        ]
    )


def show_page_diff(
    text: str, *, before: pages.VersionSelector, after: pages.VersionSelector, context: int, as_json: bool
) -> None:
    now = datetime.now(UTC)
    check_plugins(settings())
    version_diff = run_on_database(
        lambda db, _: pages.compare_versions(db, text, before=before, after=after, context=context, now=now)
    )
    new = version_diff.after
    if as_json:
        print_json({"url": new.url, "from": version_diff.before.version, "to": new.version, "diff": version_diff.diff})
    else:
        _show_diff(version_diff.before, new, version_diff.diff, now=now)
        remark(
            f"Next: recrawl versions {new.url}; recrawl show {new.url} --version {new.version.number}; to ignore a "
            f"part: recrawl rules add {version_diff.domain.authority} / --ignore-text 'WORDS' (or --ignore SELECTOR)"
        )


def _show_diff(old: pages.VersionContent, new: pages.VersionContent, diff: pages.PageDiff, *, now: datetime) -> None:
    say_heading(new.version.title or new.url)
    if new.version.title:
        say(new.url)
    for sign, side in (("-", old), ("+", new)):
        say(f"{sign} version {side.version.number}, {format_when(side.version.at, now=now)}")
    if not diff:
        say("No visible text or link differs")
        return
    say(_format_summary(diff))
    for hunk in diff.hunks:
        _show_skipped(hunk.skipped)
        for block in hunk.blocks:
            # The targets of unchanged links are not useful context.
            if block.status is not BlockStatus.UNCHANGED or block.kind is pages.BlockKind.TEXT:
                _show_block(block)
    _show_skipped(diff.skipped)


def _format_summary(diff: pages.PageDiff) -> str:
    news = Counter(block.status for block in diff.changed_blocks if block.is_news)
    ignored = sum(not block.is_news for block in diff.changed_blocks)
    counts = join_parts([f"{news[status]:,} {status.value}" for status in SIGNS if news[status]])
    ignored_note = f"; {ignored:,} ignored (noise, or by a rule)" if ignored else ""
    return f"Blocks: {counts or 'no change'}, {diff.counts[BlockStatus.UNCHANGED]:,} unchanged{ignored_note}"


def _show_skipped(count: int) -> None:
    if count:
        say_indented(Text(f"… {format_count(count, 'unchanged block')}", "dim"), indent=INDENT)


def _show_block(block: pages.BlockDiff) -> None:
    is_same = block.status is BlockStatus.UNCHANGED
    line = Text.assemble((f"{SIGNS.get(block.status, ' ')} ", "" if is_same else "bold"))
    if block.kind is not pages.BlockKind.TEXT:
        line.append(f"{block.kind.value}: ", "dim")
    words = mark_runs(block.runs)
    if is_same:
        words.stylize("dim")
    line.append_text(words)
    if block.status is BlockStatus.MOVED:
        line.append("  (moved here)", "dim")
    if not is_same and not block.is_news:
        line.append("  (ignored)", "dim")
    say_indented(line, indent=INDENT, hanging=2)
