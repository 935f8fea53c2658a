"""recrawl pages: the pages of a domain, the most important first; those of a state; or the site as it was."""

from datetime import UTC, datetime

from crawler.app.registration import domain_named, require_not_before_last_visit
from crawler.cli.exits import DONE
from crawler.cli.marked import say_heading
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.core.domain import Domain
from crawler.core.opic import Order
from crawler.core.visit import CountedAs
from crawler.errors import BadInput
from crawler.format.reasons import format_reason
from crawler.format.values import format_bytes, format_count, format_instant, format_rate, format_share, format_when
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import PageLine, PastPage

FAILED = "failed"  # no state of its own: whatever the page is, its newest look brought no good answer
STATES = (*(each.value for each in CountedAs), FAILED)


def pages(text: str | None, *, state: str | None, top: int, why: bool, at: datetime | None, as_json: bool) -> int:
    _refuse_what_is_unclear(text, state)
    now = datetime.now(UTC)

    async def work(db: Database, _: Interrupts) -> tuple[list[Domain], list[PageLine], list[PastPage] | None]:
        every = [await domain_named(db, text)] if text else [listed.domain for listed in await domains.every(db)]
        if at is not None and text and state is None and await _is_past(db, every[0], at):
            return every, [], await report.pages_at(db, every[0], at=at, most=top)
        if at is not None:
            await require_not_before_last_visit(db, every, at)
        return every, await _pages_of(db, every, state, top=top, at=at or now), None

    every, found, past = with_database(work)
    if past is not None and at is not None:
        _show_past(every[0], past, at=at, as_json=as_json)
    elif as_json:
        print_json(({"domain": every[0].authority} if text else {}) | {"pages": found})
    elif not found:
        _say_none(every[0].authority if text else None, state)
    elif state == FAILED:
        _show_failed(found, now=now)
    else:
        _show(found, order=every[0].settings.ordering.order, why=why)
    return DONE


def _refuse_what_is_unclear(text: str | None, state: str | None) -> None:
    if state is not None and state not in STATES:
        raise BadInput(f"{state!r} is no state of a page; there are {', '.join(STATES)}")
    if text is None and state is None:
        raise BadInput("pages of which domain? recrawl pages DOMAIN, or --state for those of all domains")


async def _pages_of(db: Database, every: list[Domain], state: str | None, *, top: int, at: datetime) -> list[PageLine]:
    """The most important pages of these domains altogether."""
    wanted = CountedAs(state) if state is not None and state != FAILED else None
    found = []
    for domain in every:
        found += await report.pages(db, domain, top=top, at=at, state=wanted, failing=state == FAILED)
    if len(every) > 1:
        found.sort(key=lambda page: -(page.importance or -1))
    return found[:top]


async def _is_past(db: Database, domain: Domain, at: datetime) -> bool:
    """Whether an instant is before the newest look, so that it is the past that is asked for."""
    last = (await domains.status_of(db, domain, at=at)).last_visit_at
    return last is not None and at < last


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
