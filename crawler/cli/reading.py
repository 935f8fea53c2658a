"""recrawl pages, report, changes: reading what is known."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from crawler.cli.auditing import described
from crawler.cli.domains import shown_target
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say, show, show_facts, values_of
from crawler.cli.session import Interrupts, with_database
from crawler.cli.trusting import shown_standings
from crawler.cli.values import counted, shown_bytes, shown_instant, shown_share, shown_span
from crawler.core.cash import Order
from crawler.core.domain import Domain
from crawler.core.freshness import DAY, Agreement
from crawler.register import domain_named, require_not_before_last_visit
from crawler.settings import settings
from crawler.store import domains, learned, plan
from crawler.store import report as stored
from crawler.store.database import Database
from crawler.store.learned import TrustRow
from crawler.store.plan import Calibration
from crawler.store.report import DomainReport, Edit, FeedItem, PageLine


def pages(text: str, *, top: int, at: datetime | None, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[Domain, list[PageLine]]:
        domain = await domain_named(db, text)
        if at is not None:
            await require_not_before_last_visit(db, [domain], at)
        return domain, await stored.pages(db, domain, top=top, at=at or datetime.now(UTC))

    domain, found = with_database(work)
    if as_json:
        print_json({"domain": domain.authority, "pages": found})
    elif not found:
        say(f"{domain.authority} has no pages yet: recrawl crawl {domain.authority}")
    else:
        parts = ["links", "by URL"] if domain.settings.ordering.order is Order.MIXED else []
        show(
            ["importance", *parts, "url", "state", "version", "changes", "fresh", "last look", "due"],
            [_page_row(page, parts=bool(parts)) for page in found],
            right=["importance", *parts, "version", "fresh"],
        )
    return DONE


def _page_row(page: PageLine, *, parts: bool) -> tuple[str, ...]:
    figures = (page.importance, page.popularity, page.url_score) if parts else (page.importance,)
    return (
        *(f"{figure:.2f}" if figure is not None else "-" for figure in figures),
        page.url,
        page.state.value + (f" ({page.reason})" if page.reason else ""),
        str(page.version),
        shown_rate(page.rate_per_day),
        shown_share(page.freshness),
        shown_instant(page.last_look_at),
        shown_instant(page.due_at) if page.due_at is not None else "-",
    )


def shown_rate(per_day: float) -> str:
    """A change rate as people say it."""
    if per_day >= 1:
        return f"{per_day:.1f} a day"
    return f"every {shown_span(timedelta(days=1) / per_day)}" if per_day > 1e-4 else "hardly ever"


def report(text: str | None, *, days: float, at: datetime | None, as_json: bool) -> int:
    window = timedelta(days=days)

    async def work(db: Database, _: Interrupts) -> list[tuple[DomainReport, Calibration, list[TrustRow]]]:
        if text is not None:
            wanted = [await domain_named(db, text)]
        else:
            wanted = [listed.domain for listed in await domains.every(db)]
        if at is not None:
            await require_not_before_last_visit(db, wanted, at)
        instant = at or datetime.now(UTC)
        found = [(each, await stored.domain_report(db, each, at=instant, window=window)) for each in wanted]
        return [
            (each, await _calibration(db, domain, each), await learned.trust_rows(db, domain))
            for domain, each in found
            if each is not None
        ]

    found = with_database(work)
    if as_json:
        print_json({"domains": [_document(*each) for each in found]})
    elif not found:
        say("No domain is registered: recrawl domains add URL")
    elif text is not None:
        show_facts(_facts(*found[0]))
    else:
        _show_reports([(each, calibration) for each, calibration, _ in found], window)
    return DONE


async def _calibration(db: Database, domain: Domain, found: DomainReport) -> Calibration:
    """What audits say of the finished UTC days within the report's window."""
    today = found.at.astimezone(UTC).date()
    return await plan.calibration(db, domain, since=today - max(found.window, DAY), until=today)


def _document(found: DomainReport, calibration: Calibration, standings: list[TrustRow]) -> dict[str, object]:
    return values_of(found) | {
        "changes": dict(found.changes),
        "price": _price(found),
        "is_usual_price": found.price is None,
        "calibration": {"audits": described(calibration.audits), "scheduled": described(calibration.scheduled)},
        "trust": standings,
    }


def _price(found: DomainReport) -> float:
    return settings().price if found.price is None else found.price


def _facts(found: DomainReport, calibration: Calibration, standings: list[TrustRow]) -> list[tuple[str, str]]:
    changes = ", ".join(f"{change.value}: {count}" for change, count in sorted(found.changes.items()))
    sent = found.received_bytes + found.saved_bytes
    return [
        ("Domain", found.domain + (" (paused)" if found.paused else "")),
        ("At", shown_instant(found.at)),
        ("Fresh, by importance", shown_share(found.freshness)),
        ("Fresh, all pages alike", shown_share(found.freshness_plain)),
        ("As audits found", _shown_agreement(calibration.audits) or "no audit in this time: recrawl audit"),
        ("As other looks found", _shown_agreement(calibration.scheduled)),
        ("Oldest look", shown_instant(found.oldest_look_at)),
        ("Known pages", str(found.known)),
        ("New, never fetched", str(found.new)),
        ("Gone", str(found.gone)),
        ("Moved", str(found.moved)),
        ("Refused", str(found.refused)),
        ("", " "),
        ("In the last", shown_span(found.window)),
        ("Looks", f"{found.looks} ({found.requests} requests)"),
        ("Changes", changes or "none"),
        ("Failures", str(found.failures)),
        ("Received", shown_bytes(found.received_bytes)),
        ("Saved", shown_bytes(found.saved_bytes) + (f" ({found.saved_bytes / sent:.0%})" if sent else "")),
        ("Validators", shown_standings(standings)),
        (" ", " "),
        ("Requests today", f"{found.spent_today}{_shown_budget(found)}"),
        ("Target", shown_target(found.target_age, found.target_freshness)),
        ("Price", f"{_price(found):.3g} importance x days a request{' (the usual)' if found.price is None else ''}"),
        ("Finding", found.finding),
        ("Left alone until", f"{shown_instant(found.hold_until)} ({found.hold_reason})" if found.hold_until else ""),
        ("Being crawled by", found.holder or ""),
        ("Next due", shown_instant(found.next_due_at) if found.next_due_at else ""),
    ]


def _shown_budget(found: DomainReport) -> str:
    if found.budget_per_day is not None:
        return f" of {found.budget_per_day}"
    return f" of {found.asked_per_day} that its target takes" if found.asked_per_day is not None else ""


def _shown_agreement(agreement: Agreement) -> str:
    if not agreement.looks:
        return ""
    is_off = f", off by {abs(agreement.deviations):.1f} standard deviations" if agreement.is_off else ""
    found, expected = shown_share(agreement.found_fresh), shown_share(agreement.expected_fresh)
    return f"{found} of {counted(agreement.looks, 'look')} found a fresh copy, {expected} were expected to{is_off}"


def _show_reports(found: Sequence[tuple[DomainReport, Calibration]], window: timedelta) -> None:
    numbers = ["fresh", "audited", "known", "new", "gone", "looks", "changes", "failed", "received", "saved", "today"]
    show(
        ["domain", *numbers, "oldest look", "next due"],
        [
            (
                each.domain,
                shown_share(each.freshness),
                shown_share(calibration.audits.found_fresh),
                str(each.known),
                str(each.new),
                str(each.gone + each.moved),
                str(each.looks),
                str(sum(count for change, count in each.changes.items() if change != "first")),
                str(each.failures),
                shown_bytes(each.received_bytes),
                shown_bytes(each.saved_bytes),
                f"{each.spent_today}" + (f"/{each.budget_per_day}" if each.budget_per_day is not None else ""),
                shown_instant(each.oldest_look_at) if each.oldest_look_at else "-",
                shown_instant(each.next_due_at) if each.next_due_at else "-",
            )
            for each, calibration in found
        ],
        right=numbers,
    )
    say(
        f"\nAudits, looks, changes, failures and bytes of the last {shown_span(window)}; freshness is weighted by "
        "importance, but as audited: there each page counts alike."
    )
    for each, calibration in found:
        if each.finding:
            remark(f"{each.domain}: {each.finding}")
        if calibration.audits.is_off or calibration.scheduled.is_off:
            remark(f"{each.domain}: what is reported is off: recrawl report {each.domain}")


def changes(
    *, since: int | timedelta, domain: str | None, top: int, diff: bool, at: datetime | None, as_json: bool
) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[list[FeedItem], bool]:
        only = await domain_named(db, domain) if domain is not None else None
        if at is not None:
            wanted = [only] if only is not None else [listed.domain for listed in await domains.every(db)]
            await require_not_before_last_visit(db, wanted, at)
        instant = at or datetime.now(UTC)
        await stored.stamp_feed(db, at=instant)
        items = await stored.read_feed(
            db,
            after=since if isinstance(since, int) else 0,
            since=None if isinstance(since, int) else instant - since,
            domain_id=only.id if only is not None else None,
            most=top + 1,
            blocks=diff,
        )
        return items[:top], len(items) > top

    found, more = with_database(work)
    cursor = found[-1].position if found else (since if isinstance(since, int) else None)
    if as_json:
        print_json({"changes": found, "next": cursor, "more": more})
        return DONE
    if not found:
        say("Nothing changed")
    else:
        _show_changes(found, diff=diff)
    if cursor is not None:
        remark(f"{'There is more' if more else 'Go on'}: recrawl changes --since {cursor}")
    return DONE


def _show_changes(found: Sequence[FeedItem], *, diff: bool) -> None:
    for items in [[item] for item in found] if diff else [found]:
        show(
            ["found", "change", "of", "version", "bits", "url"],
            [
                (
                    shown_instant(item.at),
                    item.change.value,
                    ", ".join(item.parts),
                    str(item.version),
                    "" if item.distance_bits is None else str(item.distance_bits),
                    item.url + (f" (on {counted(item.pages, 'page')})" if item.pages is not None else ""),
                )
                for item in items
            ],
            right=["version", "bits"],
        )
        for edit in (edit for item in items for edit in item.blocks):
            say(shown_edit(edit))


def shown_edit(edit: Edit) -> str:
    """A piece that changed, in a line for each side that there is."""
    sides = [("-", edit.was), ("+", edit.now)]
    return "\n".join(f"{sign} {edit.part.value}: {text}" for sign, text in sides if text is not None)
