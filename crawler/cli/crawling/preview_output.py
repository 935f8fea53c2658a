"""Output of recrawl crawl --dry-run: what would be fetched now, and at what cost."""

from collections.abc import Sequence
from datetime import UTC, datetime

from crawler.app.domains import make_domain_settings
from crawler.app.preview import AppDatabase, CrawlPreview, CrawlPreviews, State, Target, preview_crawl
from crawler.app.settings import SettingsPatch
from crawler.app.status import format_wait
from crawler.app.tags import add_tagged_names
from crawler.cli.options import NO_DOMAIN
from crawler.cli.output import print_json, say, show_facts, show_rows
from crawler.cli.session import Interrupts, run_on_database, settings
from crawler.format.values import format_bytes, format_count, format_instant, format_span
from crawler.json_lines import pick_fields

EXTRA_REQUESTS = ", one per page, plus robots.txt and repeat fetches of changed pages"


def show_preview(
    names: Sequence[str],
    *,
    tag: str | None,
    patch: SettingsPatch,
    max_pages: int | None,
    at: datetime | None,
    as_json: bool,
) -> None:
    make_domain_settings(patch, settings())  # raises BadInput for settings that a registration would reject

    async def work(db: AppDatabase, _: Interrupts) -> CrawlPreviews:
        return await preview_crawl(db, await add_tagged_names(db, names, tag), max_pages=max_pages, at=at)

    previews, unregistered = run_on_database(work)
    at = at or datetime.now(UTC)
    if as_json:
        print_json({"at": at, "plans": [_describe_preview(plan) for plan in previews], "unregistered": unregistered})
        return
    for name in unregistered:
        say(f"{name} is not registered: it would be registered, and its robots.txt and root page would be fetched")
    for plan in previews:
        _show_domain(plan, at=at)
    if not previews and not unregistered:
        say(NO_DOMAIN)


def _show_domain(plan: CrawlPreview, *, at: datetime) -> None:
    workload = plan.backlog
    requests = f"{format_count(plan.requests, 'request')}{EXTRA_REQUESTS if plan.requests else ''}"
    list_locations = format_count(workload.unread_lists, "default location")
    next_due = format_instant(plan.status.wake_at) if plan.status.wake_at and not plan.requests else ""
    show_facts(
        [
            (plan.domain.authority, format_wait(plan.wait, plan.domain, now=at) or requests),
            ("First", "\n".join(f"{url} (requested)" for url in plan.requested)),
            ("New pages", str(workload.unfetched)),
            ("Sitemaps", f"{list_locations} will be requested" if workload.unread_lists else ""),
            ("Due pages", f"{workload.due} ({workload.conditional} of them with validators)" if workload.due else "0"),
            ("Max bytes", format_bytes(plan.max_bytes)),
            ("Min time", format_span(plan.min_time) if plan.min_time else ""),
            (
                "Inbox",
                f"{workload.inbox_rows} found or requested URLs, not counted here" if workload.inbox_rows else "",
            ),
            ("Next due", next_due),
        ]
    )
    if plan.first:
        say("")
        rows = (
            {
                "first": target.url,
                "why": _explain_target(target),
                "importance": f"{target.importance:.2f}",
                "request": "conditional" if target.validators else "full",
            }
            for target in plan.first
        )
        show_rows(rows, right=["importance"])


def _explain_target(target: Target) -> str:
    if target.state is State.UNFETCHED:
        return "never fetched"
    return f"due, last fetched {format_instant(target.last_good_at)}"


def _describe_preview(plan: CrawlPreview) -> dict[str, object]:
    return {
        "domain": plan.domain.authority,
        "requests": plan.requests,
        "max_bytes": round(plan.max_bytes),
        "min_seconds": plan.min_time,
        "requested_urls": plan.requested,
        "wait": plan.wait,
        "next_due_at": plan.status.wake_at,
        "backlog": plan.backlog,
        "first": [
            pick_fields(target, "url", "state", "importance", "last_good_at", "received_bytes")
            | {"conditional": bool(target.validators)}
            for target in plan.first
        ],
    }
