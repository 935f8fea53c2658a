"""recrawl crawl --dry-run: what would be fetched now and what that would cost, without touching anything."""

from collections.abc import Sequence
from datetime import UTC, datetime

from crawler.app.domains import settings_of_new
from crawler.app.preview import CrawlPreview, State, Target, preview_crawl
from crawler.app.settings import SettingsPatch
from crawler.app.status import format_wait
from crawler.cli.options import NO_DOMAIN
from crawler.cli.output import pick, print_json, say, show_facts, show_rows
from crawler.cli.session import settings, with_database
from crawler.format.values import format_bytes, format_count, format_instant, format_span

ON_TOP = ", one a page; robots.txt and second looks at what has changed come on top"


def preview(
    names: Sequence[str], *, patch: SettingsPatch, max_pages: int | None, at: datetime | None, as_json: bool
) -> None:
    settings_of_new(patch, settings())  # what could not be registered is an error here, too
    plans, unknown = with_database(lambda db, _: preview_crawl(db, names, max_pages=max_pages, at=at))
    at = at or datetime.now(UTC)
    if as_json:
        print_json({"at": at, "plans": [_document(plan) for plan in plans], "unregistered": unknown})
        return
    for name in unknown:
        say(f"{name} is not registered: it would be, then /robots.txt and its root would be fetched")
    for plan in plans:
        _show(plan, at=at)
    if not plans and not unknown:
        say(NO_DOMAIN)


def _show(plan: CrawlPreview, *, at: datetime) -> None:
    load = plan.load
    requests = f"{format_count(plan.requests, 'request')}{ON_TOP if plan.requests else ''}"
    places = format_count(load.unread_lists, "usual place")
    show_facts(
        [
            (plan.domain.authority, format_wait(plan.wait, plan.domain, now=at) or requests),
            ("First", "\n".join(f"{url}, since you name it" for url in plan.named)),
            ("New pages", str(load.new)),
            ("Sitemaps", f"looked for at {places}" if load.unread_lists else ""),
            ("Due pages", f"{load.due} ({load.conditional} of them with validators)" if load.due else "0"),
            ("Bytes at most", format_bytes(plan.most_bytes)),
            ("Time at least", format_span(plan.least_time) if plan.least_time else ""),
            ("Inbox", f"{load.inbox_rows} not applied yet: counted, not listed" if load.inbox_rows else ""),
            ("Next due", format_instant(plan.status.wake_at) if not plan.requests and plan.status.wake_at else ""),
        ]
    )
    if plan.first:
        say("")
        rows = (
            {
                "first": target.url,
                "why": _why(target),
                "importance": f"{target.importance:.2f}",
                "request": "conditional" if target.validators else "full",
            }
            for target in plan.first
        )
        show_rows(rows, right=["importance"])


def _why(target: Target) -> str:
    if target.state is State.NEW:
        return "never fetched"
    return f"due, last seen {format_instant(target.last_good_at)}"


def _document(plan: CrawlPreview) -> dict[str, object]:
    return {
        "domain": plan.domain.authority,
        "requests": plan.requests,
        "most_bytes": round(plan.most_bytes),
        "least_seconds": plan.least_time,
        "named": plan.named,
        "not_now": plan.wait,
        "next_due_at": plan.status.wake_at,
        "load": plan.load,
        "first": [
            pick(target, "url", "state", "importance", "last_good_at", "received_bytes")
            | {"conditional": bool(target.validators)}
            for target in plan.first
        ],
    }
