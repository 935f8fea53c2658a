"""recrawl pages and duplicates: list the pages of a domain, now or in the past, and near-duplicate pages."""

from datetime import UTC, datetime
from typing import Annotated

from crawler.cli.lazy import pages as app
from crawler.cli.lazy import reasons, registration
from crawler.cli.options import Json, Top, argument, flag, option, time_option
from crawler.cli.output import print_json, print_listing, remark, say, say_heading, show_rows
from crawler.cli.session import DONE, PROBLEM, run_on_database
from crawler.format.values import format_bytes, format_count, format_instant, format_rate, format_share, format_when

AT_HELP = (
    "With a past time (not with --state): the site as it was then. With a future time: as if that were now. ISO 8601, "
    "default time zone UTC."
)


def pages(
    domain: Annotated[str | None, argument("DOMAIN", "A registered domain, or any URL of it.")] = None,
    state: Annotated[
        str | None,
        option("STATE", "Only pages in this state: unfetched, fetched, gone, dead_link, moved, excluded or failed."),
    ] = None,
    limit: Top = 20,
    why: Annotated[
        bool, flag("--why", "Also show the current version number, the change rate and the freshness of each page.")
    ] = False,
    at: Annotated[datetime | None, time_option(AT_HELP)] = None,
    as_json: Json = False,
) -> None:
    """List the pages of a domain, most important first.

    With --state, DOMAIN may be omitted to list pages of all domains. The state `failed` means that the last visit had
    no usable response.

    Examples:

        recrawl pages docs.example.com
        recrawl pages docs.example.com --at 2026-11-22 --limit 1000
        recrawl pages --state failed
        recrawl pages docs.example.com --limit 1000 --json
    """
    now = datetime.now(UTC)
    listing = run_on_database(lambda db, _: app.list_pages(db, domain, state=state, max_count=limit, at=at, now=now))
    listed = listing.pages
    authority = listing.domains[0].authority if domain else None
    if listing.past is not None and at is not None:
        _show_past(listing.domains[0], listing.past, at=at, as_json=as_json)
    elif as_json:
        print_json(({"domain": authority} if authority else {}) | {"pages": listed})
    elif not listed and state is not None:
        say(f"No page{f' of {authority}' if authority else ''} has the state {state}")
    elif not listed:
        say(f"{authority} has no pages yet: recrawl crawl {authority}")
    elif state == app.FAILED:
        _show_failed(listed, now=now)
    else:
        is_mixed = listing.domains[0].settings.ordering.order is app.Order.MIXED
        rows = (_format_row(page, parts=why and is_mixed, why=why) for page in listed)
        show_rows(rows, right=["importance", "link score", "URL score", "version", "fresh"])
        remark(f"Next: recrawl explain {listed[0].url}")


def _format_row(page: "app.PageLine", *, parts: bool, why: bool) -> dict[str, str]:
    weights = {"importance": page.importance}
    if parts:
        weights |= {"link score": page.popularity, "URL score": page.url_score}
    about = page.reason or page.list_kind
    figures = {"version": str(page.version), "change rate": format_rate(page.rate_per_day)}
    figures["fresh"] = format_share(page.freshness)
    return {
        **{name: f"{weight:.2f}" if weight is not None else "-" for name, weight in weights.items()},
        "url": page.url,
        "title": page.title,
        "state": page.state.value + (f" ({about})" if about else ""),
        **(figures if why else {}),
        "last visit": format_instant(page.last_visit_at),
        "due": format_instant(page.due_at) if page.due_at is not None else "-",
    }


def _show_failed(failed: "list[app.PageLine]", *, now: datetime) -> None:
    say_heading(f"{format_count(len(failed), 'page')} without a usable response")
    rows = (
        {
            "url": page.url,
            "reason": _explain_failure(page),
            "failures": f"{page.failures}",
            "last success": format_when(page.last_good_at, now=now),
            "next attempt": format_when(max(page.due_at, now), now=now) if page.due_at is not None else "-",
        }
        for page in failed
    )
    show_rows(rows, right=["failures"])
    remark(f"Next: recrawl explain {failed[0].url}; recrawl refresh {failed[0].url}")


def _explain_failure(page: "app.PageLine") -> str:
    """Return why the last visit to a page failed."""
    if page.status is not None and page.reason in {"", f"http_{page.status}"}:
        return f"status {page.status}"
    return reasons.format_reason(page.reason) or "no response"


def _show_past(domain: "app.Domain", past_pages: "list[app.PastPage]", *, at: datetime, as_json: bool) -> None:
    if past_pages and not as_json:
        say_heading(f"{domain.authority} as it was at {format_instant(at)}: {format_count(len(past_pages), 'page')}")
    rows = (
        {
            "url": page.url,
            "title": page.title,
            "state": page.state.value,
            "version": str(page.version),
            "since": format_instant(page.version_at),
            "text": format_bytes(page.text_bytes),
        }
        for page in past_pages
    )
    empty = f"{domain.authority} had no pages at {format_instant(at)}"
    document = {"domain": domain.authority, "at": at, "pages": past_pages}
    if print_listing(document, rows, right=["version", "text"], empty=empty, as_json=as_json):
        remark(f"Next: recrawl show {past_pages[0].url} --at {at.isoformat()}")


MAX_MEMBERS_SHOWN = 5  # per group in the table; with --json, 1000


def duplicates(
    name: Annotated[str | None, argument("DOMAIN|URL", "A domain, or a page of it. Default: all domains.")] = None,
    max_distance: Annotated[int, option("N", "Maximum number of the 64 SimHash bits that differ.", min=0, max=3)] = 3,
    limit: Annotated[
        int, option("N", "Maximum number of groups, or of duplicates of a given page.", min=1, max=1_000_000)
    ] = 20,
    as_json: Json = False,
) -> int:
    """List groups of pages whose main texts are nearly the same, largest groups first.

    With a URL that has a path, list the near duplicates of that page. Near duplicates stay separate pages. Pages whose
    main texts are identical can share one schedule, which is shown as "shared" (docs/duplicates.md). Pages with less
    than 100 bytes of main text are not compared.

    Examples:

        recrawl duplicates docs.example.com
        recrawl duplicates docs.example.com --max-distance 0 --limit 5
        recrawl duplicates https://docs.example.com/guide/install.html
        recrawl duplicates --json
    """
    if name is not None and app.get_path_and_query(registration.parse_typed_url(name)) != "/":
        return _show_near_duplicates(name, bits=max_distance, top=limit, as_json=as_json)
    members = 1000 if as_json else MAX_MEMBERS_SHOWN
    limits = {"max_bits": max_distance, "max_count": limit, "max_members": members}
    groups = run_on_database(lambda db, _: app.list_duplicates(db, name, **limits))
    rows = (row for group in groups[:limit] for row in _format_group_rows(group))
    document = {"bits": max_distance, "groups": groups[:limit], "more": len(groups) > limit}
    empty = "There are no near-duplicate pages"
    if print_listing(document, rows, right=("pages", "bits"), empty=empty, as_json=as_json) and len(groups) > limit:
        say("There are more groups: use --limit N")
    return DONE


def _format_group_rows(group: "app.NearDuplicateGroup") -> list[dict[str, str]]:
    """Return the rows of a group: its size and first page, then the other pages with their distance to the first."""
    rows = [{"pages": ""} | _format_near_row(each) for each in group.members]
    rows[0] |= {"pages": str(group.pages), "bits": ""}
    unlisted = group.pages - len(group.members)
    more = {"pages": "", "bits": "", "schedule": "", "url": f"and {format_count(unlisted, 'more page')}"}
    return [*rows, more] if unlisted > 0 else rows


def _format_near_row(page: "app.NearDuplicate") -> dict[str, str]:
    return {"bits": str(page.bits), "schedule": "shared" if page.shares_schedule else "", "url": page.url}


def _show_near_duplicates(name: str, *, bits: int, top: int, as_json: bool) -> int:
    url, found = run_on_database(lambda db, _: app.list_page_duplicates(db, name, max_bits=bits, max_count=top))
    empty = app.explain_missing_duplicates(url) if found is None else f"{url} has no near duplicates"
    pages, more = None if found is None else found[:top], len(found or ()) > top
    document = {"url": url, "bits": bits, "pages": pages, "more": more}
    shown = print_listing(document, map(_format_near_row, pages or ()), right=("bits",), empty=empty, as_json=as_json)
    if shown and more:
        say("There are more pages: use --limit N")
    return PROBLEM if found is None else DONE
