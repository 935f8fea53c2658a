"""recrawl duplicates: which pages say nearly the same."""

from typing import Annotated

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.lazy import pages as app
from crawler.cli.lazy import registration
from crawler.cli.options import Json, argument, option
from crawler.cli.output import print_found, say
from crawler.cli.session import with_database
from crawler.format.values import format_count

SHOWN = 5  # pages of a group, for people
TOLD = 1000  # and for programs


def duplicates(
    name: Annotated[str | None, argument("DOMAIN|URL", "One domain, or one page of it; else all domains.")] = None,
    bits: Annotated[int, option("N", "In how many of 64 bits fingerprints may differ; 0: in none.", min=0, max=3)] = 3,
    most: Annotated[int, option("N", "How many groups; with a URL, how many pages.", min=1, max=1_000_000)] = 20,
    as_json: Json = False,
) -> int:
    """List pages whose main texts are nearly the same, in groups around one of them, the largest groups first.

    With a URL that has a path: the pages that are nearly the same as this one. Each page is kept by itself; those whose
    main texts are the same, at three looks and more, share one schedule ("shared"). A page with less than 100 bytes of
    main text is not compared.

    Examples:

        recrawl duplicates docs.example.com
        recrawl duplicates docs.example.com --bits 0 --most 5
        recrawl duplicates https://docs.example.com/guide/install.html
        recrawl duplicates --json
    """
    if name is not None and app.path_and_query(registration.url_of(name)) != "/":
        return _show_near(name, bits=bits, most=most, as_json=as_json)
    members = TOLD if as_json else SHOWN
    found = with_database(
        lambda db, _: app.find_duplicates(db, name, max_bits=bits, max_count=most, max_members=members)
    )
    rows = (row for group in found[:most] for row in _rows(group))
    document = {"bits": bits, "groups": found[:most], "more": len(found) > most}
    none = "No two pages say nearly the same"
    if print_found(document, rows, right=("pages", "bits"), empty=none, as_json=as_json) and len(found) > most:
        say("There are more groups: --most")
    return DONE


def _rows(group: "app.Alike") -> list[dict[str, str]]:
    """A group: its size before its first page, and how far the others are from it."""
    first, *others = group.members
    rows = [{"pages": str(group.pages)} | _row(first) | {"bits": ""}, *({"pages": ""} | _row(each) for each in others)]
    left = group.pages - len(group.members)
    more = {"pages": "", "bits": "", "looks": "", "url": f"and {format_count(left, 'more page')}"}
    return [*rows, more] if left > 0 else rows


def _row(page: "app.Near") -> dict[str, str]:
    return {"bits": str(page.bits), "looks": "shared" if page.shares_schedule else "", "url": page.url}


def _show_near(name: str, *, bits: int, most: int, as_json: bool) -> int:
    url, found = with_database(lambda db, _: app.find_duplicates_of(db, name, max_bits=bits, max_count=most))
    pages = None if found is None else found[:most]
    none = f"No page says nearly the same as {url}"
    if found is None:
        none = f"{url} is not compared: it is not there, or has less than {app.LEAST_TEXT_BYTES} bytes of main text"
    document = {"url": url, "bits": bits, "pages": pages, "more": len(found or ()) > most}
    shown = print_found(document, map(_row, pages or ()), right=("bits",), empty=none, as_json=as_json)
    if shown and len(found or ()) > most:
        say("There are more: --most")
    return PROBLEM if found is None else DONE
