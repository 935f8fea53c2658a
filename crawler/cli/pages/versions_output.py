"""recrawl versions and recrawl show: the versions of a page, and what one of them said."""

import sys
from datetime import UTC, datetime

from rich.text import Text

from crawler.app.pages import PageVersion, State, VersionContent, WantedVersion, find_version, list_versions
from crawler.cli.marked import say_beneath
from crawler.cli.output import out, print_json, printable, remark, say, say_heading, show, show_facts
from crawler.cli.session import with_database
from crawler.errors import CrawlerError
from crawler.format.kinds import KIND_WORDS
from crawler.format.values import format_bytes, format_count, format_instant, format_share, format_span, format_when
from crawler.json_lines import values_of


def versions(text: str, *, top: int, why: bool, as_json: bool) -> None:
    now = datetime.now(UTC)

    url, found = with_database(lambda db, _: list_versions(db, text, max_count=top, now=now))
    if as_json:
        print_json({"url": url, "versions": found})
        return
    say_heading(f"{format_count(found[0].number, 'version')} of {url}")
    figures = ["parts", "distance"] if why else []
    show(
        ["version", "seen", "held for", "what", "amount", *figures, "size", "title"],
        [_version_row(version, why=why) for version in found],
        right=["version", "amount", "distance", "size"],
    )
    if len(found) > 1:
        remark(f"Next: recrawl diff {url}; recrawl show {url} --version {found[-1].number}")
    else:
        remark(f"Next: recrawl show {url}")


def _version_row(version: PageVersion, *, why: bool) -> tuple[str, ...]:
    distance = f"{version.distance_bits} bits" if version.distance_bits is not None else "-"
    figures = (" ".join(version.parts), distance) if why else ()
    return (
        str(version.number),
        format_instant(version.at),
        format_span(version.until - version.at) if version.until else "to this day",
        KIND_WORDS[version.change] if version.change else "list",
        format_share(version.amount),
        *figures,
        format_bytes(version.body_bytes) if version.body_bytes is not None else "not kept",
        version.title,
    )


def show_page(text: str, *, wanted: WantedVersion, form: str | None, as_json: bool) -> None:
    """Show one version of a page. form: text, html or headers; None for facts and text."""
    now = datetime.now(UTC)

    found = with_database(lambda db, _: find_version(db, text, wanted, now=now))
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
        _show_next(found)


def _write_body(found: VersionContent) -> None:
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


def _show_headers(found: VersionContent) -> None:
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


def _show_facts(found: VersionContent, *, now: datetime) -> None:
    version = found.version
    until = f", until {format_instant(version.until)}" if version.until else ""
    since = f"since {format_when(found.state_at, now=now)}" if found.state_at else "for longer than the feed goes back"
    state = "" if found.state is State.KNOWN else f"{found.state.value} {since}"
    kept = format_bytes(version.body_bytes) if version.body_bytes is not None else "the body is not kept"
    rendered = ", as a browser made it" if version.is_rendered else ""
    show_facts(
        [
            ("URL", found.url),
            ("Title", version.title),
            ("Version", f"{version.number}, seen {format_when(version.at, now=now)}{until}"),
            ("State", state and f"{state}; this is what it said last"),
            (
                "Kept",
                f"{kept}, {version.content_type or 'no content type'}{rendered}",
            ),
        ]
    )


def _show_next(found: VersionContent) -> None:
    if found.version.number > 1:
        remark(f"Next: recrawl diff {found.url} --to {found.version.number}; recrawl versions {found.url}")
    else:
        remark(f"Next: recrawl explain {found.url}")
