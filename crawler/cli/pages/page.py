"""recrawl explain, try, versions, show, diff and values."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from crawler.cli import values
from crawler.cli.lazy import explain_output, try_page_output, versions_output
from crawler.cli.options import At, Json, PageUrl, Top, argument, flag, option


def versions(
    url: PageUrl,
    limit: Top = 50,
    why: Annotated[
        bool, flag("--why", "Also show which parts changed, and the SimHash distance from the version before.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the versions of a page, newest first, with their times and change magnitudes.

    Examples:

        recrawl versions https://docs.example.com/guide/
    """
    versions_output.show_versions(url, top=limit, why=why, as_json=as_json)


def show(
    url: PageUrl,
    at: Annotated[
        str | None,
        option(
            "SPAN|TIME",
            "The version at that time: 7d (ago), yesterday (its start, UTC) or 2026-11-22T12:00. Default: the newest.",
        ),
    ] = None,
    version: Annotated[int | None, option("N", "The version with this number.", min=1)] = None,
    content: Annotated[bool, flag("--content", "Print only the content: what a reader would call the page.")] = False,
    text: Annotated[bool, flag("--text", "Print only the text whose changes are reported.")] = False,
    html: Annotated[bool, flag("--html", "Print only the body; in a pipe, as the exact bytes.")] = False,
    headers: Annotated[bool, flag("--headers", "Print the stored response headers.")] = False,
    as_json: Json = False,
) -> None:
    """Show the content of a page, now or at an earlier time.

    Without --content, --text, --html and --headers, this prints the content and facts about the version.

    Examples:

        recrawl show https://docs.example.com/guide/
        recrawl show https://docs.example.com/guide/ --at yesterday --content
        recrawl show https://docs.example.com/guide/ --version 1 --html > first.html
    """
    choices = {"content": content, "text": text, "html": html, "headers": headers}
    forms = [name for name, is_chosen in choices.items() if is_chosen]
    if len(forms) > 1:
        raise typer.BadParameter(f"--{forms[0]} and --{forms[1]} cannot be combined")
    if at is not None and version is not None:
        raise typer.BadParameter("--at and --version cannot be combined")
    selector = version if version is not None else _parse_instant(at)
    versions_output.show_page(url, selector=selector, form=forms[0] if forms else None, as_json=as_json)


def diff(
    url: PageUrl,
    before: Annotated[
        str | None,
        option(
            "VERSION|SPAN|TIME",
            "The old version: its number, a span before now (7d), a time or the start of a day (UTC). Default: the "
            "version before --to.",
            "--from",
        ),
    ] = None,
    after: Annotated[
        str | None,
        option(
            "VERSION|SPAN|TIME",
            "The new version: its number, a span before now (7d), a time or the start of a day (UTC). Default: the "
            "newest.",
            "--to",
        ),
    ] = None,
    context: Annotated[int, option("N", "Number of unchanged blocks shown around each change.", min=0, max=1000)] = 1,
    as_json: Json = False,
) -> None:
    """Show the differences between two versions of a page, word by word. Default: the last two versions.

    Removed words are red or [-marked-], new words are green or {+marked+}. A block is marked with ~ if it
    changed, + if it was added, - if it was removed, and > if it moved. Blocks that differ only by known noise, or in
    parts that a rule ignores, are marked "(ignored)".

    Examples:

        recrawl diff https://docs.example.com/guide/
        recrawl diff https://docs.example.com/guide/ --from 1
        recrawl diff https://docs.example.com/guide/ --from 2026-11-01 --to yesterday
    """
    old, new = _parse_version(before), _parse_version(after)
    versions_output.show_page_diff(url, before=old, after=new, context=context, as_json=as_json)


def page_values(
    url: PageUrl,
    name: Annotated[str, option("NAME", "Only the value with this name.")] = "",
    limit: Top = 50,
    as_json: Json = False,
) -> None:
    """Show the values that rules read from a page, such as a price, over time: each change, newest first.

    To read a value: recrawl rules add DOMAIN PATTERN --value 'NAME SOURCE'.

    Examples:

        recrawl values https://shop.example.com/kettle
        recrawl values https://shop.example.com/kettle --name price --json
    """
    versions_output.show_values(url, name=name, top=limit, as_json=as_json)


def _parse_version(text: str | None, number: str = "version number") -> int | timedelta | datetime | None:
    return None if text is None else values.parse_since(text, now=datetime.now(UTC), number=number)


def _parse_instant(text: str | None) -> timedelta | datetime | None:
    parsed = _parse_version(text, "time")
    if isinstance(parsed, int):
        raise typer.BadParameter(f"{text!r} is not a time; did you mean --version {parsed}?")
    return parsed


def explain(
    url: Annotated[str, argument("URL", "Any URL, whether or not recrawl stores it as a page.")],
    why: Annotated[
        bool,
        flag(
            "--why",
            "Also show the value of a visit, the change-rate estimate, the cash (docs/importance.md), and which "
            "pages link to the URL.",
        ),
    ] = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Explain when and why a URL is crawled next, or why not, and how fresh its copy is.

    Exit code 1 if the domain of the URL is not registered.

    Examples:

        recrawl explain https://docs.example.com/guide/install.html
        recrawl explain https://docs.example.com/guide/install.html --why
    """
    return explain_output.show_explanation(url, why=why, at=at, as_json=as_json)


def try_page(
    url: Annotated[str, argument("URL", "Any URL of a registered domain.")],
    repeat: Annotated[
        bool, flag("--repeat", "Fetch three times, one delay apart, and show what differs between the fetches.")
    ] = False,
    screenshot: Annotated[
        Path | None, option("FILE", "Render the page and write a screenshot (PNG, without images).", dir_okay=False)
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Fetch one page without recording it, and show which blocks would be compared, which are masked, and why.

    If a version of the page is stored, the differences from the last version are shown, too, and which of them count
    as a change. The request respects robots.txt and the domain's scope, delay and budget. Exit code 1 if the page could
    not be fetched.

    Examples:

        recrawl try https://docs.example.com/guide/install.html
        recrawl try https://docs.example.com/ --repeat
        recrawl try https://app.example.com/ --screenshot app.png
        recrawl try https://docs.example.com/ --json
    """
    return try_page_output.show_trial(url, again=repeat, screenshot=screenshot, at=at, as_json=as_json)
