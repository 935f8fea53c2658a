"""recrawl pages: the pages of a domain, the most important first; those of a state; or the site as it was."""

from datetime import UTC, datetime

from crawler.app.pages import FAILED, Domain, Order, PageLine, PastPage, list_pages
from crawler.cli.marked import say_heading
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import with_database
from crawler.format.reasons import format_reason
from crawler.format.values import format_bytes, format_count, format_instant, format_rate, format_share, format_when


def pages(text: str | None, *, state: str | None, top: int, why: bool, at: datetime | None, as_json: bool) -> None:
    now = datetime.now(UTC)
    listing = with_database(lambda db, _: list_pages(db, text, state=state, max_count=top, at=at, now=now))
    every, found = listing.domains, listing.pages
    if listing.past is not None and at is not None:
        _show_past(every[0], listing.past, at=at, as_json=as_json)
    elif as_json:
        print_json(({"domain": every[0].authority} if text else {}) | {"pages": found})
    elif not found:
        _say_none(every[0].authority if text else None, state)
    elif state == FAILED:
        _show_failed(found, now=now)
    else:
        _show(found, order=every[0].settings.ordering.order, why=why)


def _say_none(authority: str | None, state: str | None) -> None:
    if state is not None:
        say(f"No page{f' of {authority}' if authority else ''} is {state}")
    else:
        say(f"{authority} has no pages yet: recrawl crawl {authority}")


def _show(found: list[PageLine], *, order: Order, why: bool) -> None:
    parts = ["links", "by URL"] if why and order is Order.MIXED else []
    figures = ["version", "changes", "fresh"] if why else []
    show(
        ["importance", *parts, "url", "title", "state", *figures, "last look", "due"],
        [_page_row(page, parts=bool(parts), why=why) for page in found],
        right=["importance", *parts, "version", "fresh"],
    )
    remark(f"Next: recrawl explain {found[0].url}")


def _page_row(page: PageLine, *, parts: bool, why: bool) -> tuple[str, ...]:
    weights = (page.importance, page.popularity, page.url_score) if parts else (page.importance,)
    figures = (str(page.version), format_rate(page.rate_per_day), format_share(page.freshness)) if why else ()
    return (
        *(f"{weight:.2f}" if weight is not None else "-" for weight in weights),
        page.url,
        page.title,
        page.state.value + (f" ({page.reason or page.list_kind})" if page.reason or page.list_kind else ""),
        *figures,
        format_instant(page.last_look_at),
        format_instant(page.due_at) if page.due_at is not None else "-",
    )


def _show_failed(found: list[PageLine], *, now: datetime) -> None:
    say_heading(f"{format_count(len(found), 'page')} without a good answer")
    show(
        ["url", "why", "failed", "was good", "next try"],
        [
            (
                page.url,
                _why(page),
                f"{page.failures}x",
                format_when(page.last_good_at, now=now),
                format_when(page.due_at, now=now) if page.due_at is not None else "-",
            )
            for page in found
        ],
        right=["failed"],
    )
    remark(f"Next: recrawl explain {found[0].url}; recrawl refresh {found[0].url}")


def _why(page: PageLine) -> str:
    """Why its newest look was no good one."""
    if page.status is not None and page.reason in {"", f"http_{page.status}"}:
        return f"status {page.status}"
    return format_reason(page.reason) or "no answer"


def _show_past(domain: Domain, found: list[PastPage], *, at: datetime, as_json: bool) -> None:
    if as_json:
        print_json({"domain": domain.authority, "at": at, "pages": found})
        return
    if not found:
        say(f"Nothing was known of {domain.authority} at {format_instant(at)}")
        return
    say_heading(f"{domain.authority} as it was at {format_instant(at)}: {format_count(len(found), 'page')}")
    show(
        ["url", "title", "state", "version", "seen", "text"],
        [
            (
                page.url,
                page.title,
                page.state.value,
                str(page.version),
                format_instant(page.version_at),
                format_bytes(page.text_bytes),
            )
            for page in found
        ],
        right=["version", "text"],
    )
    remark(f"Next: recrawl show {found[0].url} --at {at.isoformat()}")
