"""recrawl pages and duplicates: the pages of a domain, now or as they were, and those that say nearly the same."""

from datetime import UTC, datetime
from typing import Annotated

from crawler.cli import values
from crawler.cli.lazy import pages as app
from crawler.cli.lazy import reasons, registration
from crawler.cli.options import Json, Top, Why, argument, option
from crawler.cli.output import print_found, print_json, remark, say, say_heading, show_rows
from crawler.cli.session import DONE, PROBLEM, with_database
from crawler.format.values import format_bytes, format_count, format_instant, format_rate, format_share, format_when


def pages(
    domain: Annotated[str | None, argument("DOMAIN", "A registered name, or any URL of it.")] = None,
    state: Annotated[
        str | None, option("STATE", "Only these: new, known, gone, dead_link, moved, refused, failed.")
    ] = None,
    top: Top = 20,
    why: Why = False,
    at: Annotated[
        datetime | None,
        option(
            "INSTANT",
            "The site as it was at this instant; after the last visit: as if it were then. ISO 8601, else UTC.",
            parser=values.instant,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List a domain's pages, the most important first; with --at the site as it was.

    Of all domains with --state: failed are pages of which the newest look brought no good answer.

    Examples:

        recrawl pages docs.example.com
        recrawl pages docs.example.com --at 2026-11-22 --top 1000
        recrawl pages --state failed
        recrawl pages docs.example.com --top 1000 --json
    """
    now = datetime.now(UTC)
    listing = with_database(lambda db, _: app.list_pages(db, domain, state=state, max_count=top, at=at, now=now))
    every, found = listing.domains, listing.pages
    authority = every[0].authority if domain else None
    if listing.past is not None and at is not None:
        _show_past(every[0], listing.past, at=at, as_json=as_json)
    elif as_json:
        print_json(({"domain": authority} if authority else {}) | {"pages": found})
    elif not found and state is not None:
        say(f"No page{f' of {authority}' if authority else ''} is {state}")
    elif not found:
        say(f"{authority} has no pages yet: recrawl crawl {authority}")
    elif state == app.FAILED:
        _show_failed(found, now=now)
    else:
        _show(found, order=every[0].settings.ordering.order, why=why)


def _show(found: "list[app.PageLine]", *, order: "app.Order", why: bool) -> None:
    rows = (_row(page, parts=why and order is app.Order.MIXED, why=why) for page in found)
    show_rows(rows, right=["importance", "links", "by URL", "version", "fresh"])
    remark(f"Next: recrawl explain {found[0].url}")


def _row(page: "app.PageLine", *, parts: bool, why: bool) -> dict[str, str]:
    weights = {"importance": page.importance}
    if parts:
        weights |= {"links": page.popularity, "by URL": page.url_score}
    about = page.reason or page.list_kind
    figures = {
        "version": str(page.version),
        "changes": format_rate(page.rate_per_day),
        "fresh": format_share(page.freshness),
    }
    return {
        **{name: f"{weight:.2f}" if weight is not None else "-" for name, weight in weights.items()},
        "url": page.url,
        "title": page.title,
        "state": page.state.value + (f" ({about})" if about else ""),
        **(figures if why else {}),
        "last look": format_instant(page.last_look_at),
        "due": format_instant(page.due_at) if page.due_at is not None else "-",
    }


def _show_failed(found: "list[app.PageLine]", *, now: datetime) -> None:
    say_heading(f"{format_count(len(found), 'page')} without a good answer")
    rows = (
        {
            "url": page.url,
            "why": _why(page),
            "failed": f"{page.failures}x",
            "was good": format_when(page.last_good_at, now=now),
            "next try": format_when(page.due_at, now=now) if page.due_at is not None else "-",
        }
        for page in found
    )
    show_rows(rows, right=["failed"])
    remark(f"Next: recrawl explain {found[0].url}; recrawl refresh {found[0].url}")


def _why(page: "app.PageLine") -> str:
    """Why its newest look was no good one."""
    if page.status is not None and page.reason in {"", f"http_{page.status}"}:
        return f"status {page.status}"
    return reasons.format_reason(page.reason) or "no answer"


def _show_past(domain: "app.Domain", found: "list[app.PastPage]", *, at: datetime, as_json: bool) -> None:
    if found and not as_json:
        say_heading(f"{domain.authority} as it was at {format_instant(at)}: {format_count(len(found), 'page')}")
    rows = (
        {
            "url": page.url,
            "title": page.title,
            "state": page.state.value,
            "version": str(page.version),
            "seen": format_instant(page.version_at),
            "text": format_bytes(page.text_bytes),
        }
        for page in found
    )
    none = f"Nothing was known of {domain.authority} at {format_instant(at)}"
    document = {"domain": domain.authority, "at": at, "pages": found}
    if print_found(document, rows, right=["version", "text"], empty=none, as_json=as_json):
        remark(f"Next: recrawl show {found[0].url} --at {at.isoformat()}")


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
    rows = (row for group in found[:most] for row in _group_rows(group))
    document = {"bits": bits, "groups": found[:most], "more": len(found) > most}
    none = "No two pages say nearly the same"
    if print_found(document, rows, right=("pages", "bits"), empty=none, as_json=as_json) and len(found) > most:
        say("There are more groups: --most")
    return DONE


def _group_rows(group: "app.Alike") -> list[dict[str, str]]:
    """A group: its size before its first page, and how far the others are from it."""
    first, *others = group.members
    rows = [
        {"pages": str(group.pages)} | _near_row(first) | {"bits": ""},
        *({"pages": ""} | _near_row(each) for each in others),
    ]
    left = group.pages - len(group.members)
    more = {"pages": "", "bits": "", "looks": "", "url": f"and {format_count(left, 'more page')}"}
    return [*rows, more] if left > 0 else rows


def _near_row(page: "app.Near") -> dict[str, str]:
    return {"bits": str(page.bits), "looks": "shared" if page.shares_schedule else "", "url": page.url}


def _show_near(name: str, *, bits: int, most: int, as_json: bool) -> int:
    url, found = with_database(lambda db, _: app.find_duplicates_of(db, name, max_bits=bits, max_count=most))
    pages = None if found is None else found[:most]
    none = f"No page says nearly the same as {url}"
    if found is None:
        none = f"{url} is not compared: it is not there, or has less than {app.LEAST_TEXT_BYTES} bytes of main text"
    document = {"url": url, "bits": bits, "pages": pages, "more": len(found or ()) > most}
    shown = print_found(document, map(_near_row, pages or ()), right=("bits",), empty=none, as_json=as_json)
    if shown and len(found or ()) > most:
        say("There are more: --most")
    return PROBLEM if found is None else DONE
