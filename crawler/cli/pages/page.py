"""recrawl explain, try, versions, show and diff: their options and their help."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from crawler.cli import values
from crawler.cli.lazy import explain_output, try_page_output, versions_output
from crawler.cli.options import At, Json, PageUrl, Top, Why, declare_argument, declare_flag, declare_option


def versions(url: PageUrl, limit: Top = 50, why: Why = False, as_json: Json = False) -> None:
    """List the versions of a page, the newest first: when each was seen, and how much it changed.

    Examples:

        recrawl versions https://docs.example.com/guide/
    """
    versions_output.show_versions(url, top=limit, why=why, as_json=as_json)


def show(
    url: PageUrl,
    at: Annotated[
        str | None, declare_option("SPAN|DAY", "As it was 7d ago, yesterday, or at 2026-11-22T12:00; else the newest.")
    ] = None,
    version: Annotated[int | None, declare_option("N", "The version of this number.", min=1)] = None,
    text: Annotated[bool, declare_flag("--text", "Nothing but its text.")] = False,
    html: Annotated[bool, declare_flag("--html", "Nothing but its body, byte by byte in a pipe.")] = False,
    headers: Annotated[bool, declare_flag("--headers", "What is kept of its headers.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a page says, or said at an instant.

    Examples:

        recrawl show https://docs.example.com/guide/
        recrawl show https://docs.example.com/guide/ --at yesterday --text
        recrawl show https://docs.example.com/guide/ --version 1 --html > first.html
    """
    forms = [name for name, is_chosen in (("text", text), ("html", html), ("headers", headers)) if is_chosen]
    if len(forms) > 1:
        raise typer.BadParameter(f"--{forms[0]} and --{forms[1]} exclude each other")
    if at is not None and version is not None:
        raise typer.BadParameter("--at and --version exclude each other")
    selector = version if version is not None else _parse_instant(at)
    versions_output.show_page(url, selector=selector, form=forms[0] if forms else None, as_json=as_json)


def diff(
    url: PageUrl,
    before: Annotated[
        str | None, declare_option("VERSION|SPAN|DAY", "From this version, or the one of 7d ago, of a day.", "--from")
    ] = None,
    after: Annotated[
        str | None, declare_option("VERSION|SPAN|DAY", "To this version, or the one of then; else the newest.", "--to")
    ] = None,
    context: Annotated[int, declare_option("N", "Unchanged blocks beside a change.", min=0, max=1000)] = 1,
    as_json: Json = False,
) -> None:
    """Show what differs between two versions of a page, word by word: the last two, unless others are named.

    What went stands in red or as [-old-], what came in green or as {+new+}. A block begins with ~ where it changed,
    + where it came, - where it went, > where it moved. Known noise, and what a rule leaves out, is shown as such.

    Examples:

        recrawl diff https://docs.example.com/guide/
        recrawl diff https://docs.example.com/guide/ --from 1
        recrawl diff https://docs.example.com/guide/ --from 2026-11-01 --to yesterday
    """
    versions_output.show_page_diff(
        url, before=_parse_version(before), after=_parse_version(after), context=context, as_json=as_json
    )


def _parse_version(text: str | None) -> int | timedelta | datetime | None:
    return None if text is None else values.parse_since(text, now=datetime.now(UTC))


def _parse_instant(text: str | None) -> timedelta | datetime | None:
    parsed = _parse_version(text)
    if isinstance(parsed, int):
        raise typer.BadParameter(f"{text!r} is no instant: --version {parsed} shows that version")
    return parsed


def explain(
    url: Annotated[str, declare_argument("URL", "Any URL, tracked or not.")],
    why: Why = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say what is known about one URL: when it is due and why, how fresh it is; or why it is not crawled.

    With --why what it is worth at which price, what is believed about its changes, and who links to it.

    Examples:

        recrawl explain https://docs.example.com/guide/install.html
        recrawl explain https://docs.example.com/guide/install.html --why
    """
    return explain_output.show_explanation(url, why=why, at=at, as_json=as_json)


def try_page(
    url: Annotated[str, declare_argument("URL", "A page of a registered domain, known or not.")],
    repeat: Annotated[
        bool, declare_flag("--repeat", "Look three times, one delay apart, and show what that teaches.")
    ] = False,
    screenshot: Annotated[
        Path | None, declare_option("FILE", "Render it, and write a picture (PNG, without its images).", dir_okay=False)
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Look at one page, and show what of it would be compared, what is masked, and why; nothing is recorded.

    Of a known page: what differs from its last version, and which of it is news. It is a look like any other: as
    robots.txt and the domain's scope, delay and budget allow. Exit code 1 where the page could not be had.

    Examples:

        recrawl try https://docs.example.com/guide/install.html
        recrawl try https://docs.example.com/ --repeat
        recrawl try https://app.example.com/ --screenshot app.png
        recrawl try https://docs.example.com/ --json
    """
    return try_page_output.show_trial(url, again=repeat, screenshot=screenshot, at=at, as_json=as_json)
