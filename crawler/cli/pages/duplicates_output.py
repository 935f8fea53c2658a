"""recrawl duplicates: which pages say nearly the same."""

from collections.abc import Sequence

from crawler.app.pages import (
    LEAST_TEXT_BYTES,
    Alike,
    Near,
    Url,
    find_duplicates,
    find_duplicates_of,
    path_and_query,
)
from crawler.app.registration import url_of
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, say, show
from crawler.cli.session import with_database
from crawler.format.values import format_count

SHOWN = 5  # pages of a group, for people
TOLD = 1000  # and for programs


def duplicates(text: str | None, *, bits: int, most: int, as_json: bool) -> int:
    if text is not None and path_and_query(url_of(text)) != "/":
        return _of_page(text, bits=bits, most=most, as_json=as_json)
    _of_domains(text, bits=bits, most=most, as_json=as_json)
    return DONE


def _of_domains(text: str | None, *, bits: int, most: int, as_json: bool) -> None:
    members = TOLD if as_json else SHOWN
    found = with_database(lambda db, _: find_duplicates(db, text, max_bits=bits, max_count=most, max_members=members))
    if as_json:
        print_json({"bits": bits, "groups": found[:most], "more": len(found) > most})
    elif not found:
        say("No two pages say nearly the same")
    else:
        show(
            ["pages", "bits", "looks", "url"],
            [row for group in found[:most] for row in _rows(group)],
            right=["pages", "bits"],
        )
        if len(found) > most:
            say("There are more groups: --most")


def _shown_looks(page: Near) -> str:
    return "shared" if page.shares_schedule else ""


def _rows(group: Alike) -> list[tuple[str, ...]]:
    """A group: its size before its first page, and how far the others are from it."""
    first, *others = group.members
    rows: list[tuple[str, ...]] = [
        (str(group.pages), "", _shown_looks(first), first.url),
        *(("", str(other.bits), _shown_looks(other), other.url) for other in others),
    ]
    left = group.pages - len(group.members)
    return [*rows, ("", "", "", f"and {format_count(left, 'more page')}")] if left > 0 else rows


def _of_page(text: str, *, bits: int, most: int, as_json: bool) -> int:
    url, found = with_database(lambda db, _: find_duplicates_of(db, text, max_bits=bits, max_count=most))
    if as_json:
        pages = None if found is None else found[:most]
        print_json({"url": url, "bits": bits, "pages": pages, "more": len(found or ()) > most})
    elif found is None:
        say(f"{url} is not compared: it is not there, or has less than {LEAST_TEXT_BYTES} bytes of main text")
    else:
        _show_near(url, found, most=most)
    return PROBLEM if found is None else DONE


def _show_near(url: Url, found: Sequence[Near], *, most: int) -> None:
    if not found:
        say(f"No page says nearly the same as {url}")
        return
    rows = [(str(page.bits), _shown_looks(page), page.url) for page in found[:most]]
    show(["bits", "looks", "url"], rows, right=["bits"])
    if len(found) > most:
        say("There are more: --most")
