"""Run and output of recrawl crawl: one crawl run in this process, and its summary."""

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from crawler.app import crawl as app
from crawler.app.database import AppDatabase
from crawler.app.settings import SettingsPatch
from crawler.app.tags import add_tagged_names
from crawler.cli.domains.register import probe_and_register
from crawler.cli.lazy import notify_output, progress
from crawler.cli.output import is_terminal, print_json, remark, say, show_facts, show_rows
from crawler.cli.running.prune import remark_quotas
from crawler.cli.session import DONE, PROBLEM, Interrupts, run_on_database, settings
from crawler.clock import Clock
from crawler.extras import explain_missing_extra
from crawler.format.reasons import HEADINGS, format_reason
from crawler.format.values import format_bytes, format_count, format_instant, format_when
from crawler.json_lines import pick_fields

MAX_NAMED = 10  # pages listed per kind
NO_BROWSER = "no browser was found. Install one with `apt-get install chromium-headless-shell` (docs/rendering.md)"


def run_crawl(
    names: Sequence[str],
    request: app.CrawlRequest,
    *,
    tag: str | None,
    patch: SettingsPatch,
    due: bool,
    offline: bool,
    as_json: bool,
) -> int:
    """Crawl the named domains and pages and those with a tag, print the result and return the exit code.

    request: this function sets its `stop`.  due: skip named pages that are not due.
    """
    at = request.at

    async def work(db: AppDatabase, interrupts: Interrupts) -> tuple[app.CrawlResult, Interrupts]:
        clock = Clock.from_instant(at)

        async def register(name: str) -> tuple[app.Domain, app.Fetched | None]:
            return await probe_and_register(db, name, patch, offline=offline, at=clock.now())

        selected = await add_tagged_names(db, names, tag)
        targets = await app.find_targets(db, selected, at=at, register=register, only_due=due)
        _remark_conditions(targets, patch, at=at)
        stoppable = replace(request, stop=interrupts.stop)
        if not is_terminal(sys.stderr):
            return await app.crawl(db, targets, stoppable, clock=clock), interrupts
        pending = await app.count_due_pages(db, targets.domains, at=clock.now())
        with progress.CrawlProgress(pending=pending or 0, max_pages=request.max_pages) as bar:
            hooks = app.ShiftHooks(progress=bar.record_batch)
            return await app.crawl(db, targets, stoppable, clock=clock, hooks=hooks), interrupts

    # Each lease needs one connection to record visits and one to renew itself.
    result, interrupts = run_on_database(work, connections=2 * settings().concurrent_domains + 2, patient=True)
    remark_quotas(result.pruned)
    _remark_notified(result)
    _print_result(result, as_json=as_json)
    return interrupts.exit_code or (DONE if result.is_well else PROBLEM)


def _remark_conditions(targets: app.CrawlTargets, patch: SettingsPatch, *, at: datetime | None) -> None:
    for domain in targets.registered:
        if patch.is_change_of(domain.settings):
            name, remedy = domain.authority, f"To change them: recrawl domains set {domain.authority}"
            remark(f"{name} is already registered: the settings given here are ignored. {remedy}")
    if at is not None and at > datetime.now(UTC) + timedelta(minutes=1):
        remark(f"recrawl: visits are recorded as of {format_instant(at)}; until then, pass --at to later commands")


def _remark_notified(result: app.CrawlResult) -> None:
    sent = result.delivered
    if sent.messages:
        remark(f"Notified: {format_count(sent.changes, 'change')} in {format_count(sent.messages, 'message')}")
    if sent.undelivered:
        notify_output.remark_failures(sent)
    if result.notify_error:
        remark(f"recrawl: {result.notify_error}; to send the notifications: recrawl notify run")


def _print_result(result: app.CrawlResult, *, as_json: bool) -> None:
    """Print the result to stdout, and problems to stderr."""
    _remark_problems(result)
    if as_json:
        print_json(_describe_result(result))
        return
    if result.stats.requests == 0:
        if not result.idle_reasons:
            say("Nothing was due")
        _say_idle(result)
        return
    show_facts(_list_facts(result.stats))
    if len(result.shift.by_domain) > 1:
        say("")
        rows = (
            {
                "domain": domain,
                "visits": str(stats.visits),
                **{name: str(stats.changes[app.Change(name)]) for name in ("changed", "added", "gone")},
                "failed": str(stats.failed),
                "received": format_bytes(stats.received_bytes),
            }
            for domain, stats in sorted(result.shift.by_domain.items())
        )
        show_rows(rows, right=["visits", "changed", "added", "gone", "failed", "received"])
    for line in _format_pages(result.stats):
        say(line)
    _say_idle(result)
    if result.next_due_at is not None and result.next_due_at > result.at:
        say(f"\nNext due: {format_when(result.next_due_at, now=result.at)}")
    if result.stats.changes[app.Change.CHANGED]:
        remark("Next: recrawl changes shows the changed words")


def _say_idle(result: app.CrawlResult) -> None:
    for domain, reason in result.idle_reasons.items():
        if domain not in result.problem_domains:
            say(f"{domain} {reason}")


def _format_pages(stats: app.CrawlStats) -> list[str]:
    """Return the list of notable pages under a heading per kind of change, without added pages."""
    lines = []
    for change, heading in HEADINGS.items():
        pages = stats.notable_pages[change][:MAX_NAMED]
        if not pages:
            continue
        lines += ["", f"{heading}:"]
        lines += [f"  {page.url}{f'  ({format_reason(page.reason)})' if page.reason else ''}" for page in pages]
        more = stats.count_unlisted(change) + len(stats.notable_pages[change]) - len(pages)
        if more:
            lines.append(f"  and {more:,} more")
    if stats.dead_link_urls:
        lines += ["", "Dead links:", *(f"  {url}" for url in stats.dead_link_urls[:MAX_NAMED])]
    return lines


def _list_facts(stats: app.CrawlStats) -> list[tuple[str, str]]:
    """Return the summary of a crawl as pairs of label and value."""
    changes = stats.changes
    unchanged = changes[app.Change.UNCHANGED] + changes[app.Change.COSMETIC]
    not_modified = f" (not modified: {stats.not_modified})" if stats.not_modified else ""
    cosmetic = f" (cosmetic: {changes[app.Change.COSMETIC]})" if changes[app.Change.COSMETIC] else ""
    reasons, outages = _format_reasons(stats.reasons), stats.outages.total()
    dead_links = _format_explained_count(stats.dead_links, "not found, and never fetched before")
    no_browser = (explain_missing_extra("browser", "a browser") or NO_BROWSER) if stats.without_browser else ""
    excluded, without_browser = format_count(stats.excluded, "page"), format_count(stats.without_browser, "page")
    absent_lists = format_count(stats.absent_lists, "default location")
    seconds = stats.elapsed.total_seconds()
    pace = f" ({stats.visits / seconds:.1f} pages a second)" if seconds >= 1 and stats.visits else ""
    return [
        ("Visited", format_count(stats.visits, "page")),
        ("Added", _format_explained_count(changes[app.Change.ADDED], "fetched for the first time")),
        ("Unchanged", f"{unchanged}{not_modified}{cosmetic}"),
        ("Changed", str(changes[app.Change.CHANGED])),
        ("Gone", str(changes[app.Change.GONE])),
        ("Dead links", dead_links if stats.dead_links else ""),
        ("Moved", str(changes[app.Change.MOVED] or "")),
        ("Restored", str(changes[app.Change.RESTORED] or "")),
        ("Failed", f"{stats.failed} ({reasons})" if reasons else str(stats.failed)),
        ("Suspended", f"{format_count(outages, 'domain')} ({_format_reasons(stats.outages)})" if outages else ""),
        ("Excluded", f"{excluded}, by robots.txt or the domain's settings" if stats.excluded else ""),
        ("Rendered", f"{format_count(stats.rendered, 'page')} in a browser" if stats.rendered else ""),
        ("Not rendered", f"{without_browser}: {no_browser}" if stats.without_browser else ""),
        ("Sitemaps, feeds", f"none at {absent_lists}" if stats.absent_lists else ""),
        ("New URLs", _format_explained_count(stats.new_pages, "found in links and sitemaps during this crawl")),
        ("Received", f"{format_bytes(stats.received_bytes)} in {format_count(stats.requests, 'request')}"),
        ("Traffic saved", format_bytes(stats.saved_bytes)),
        ("Seconds", f"{seconds:.1f}{pace}"),
    ]


def _format_explained_count(count: int, meaning: str) -> str:
    return f"{count} ({meaning})" if count else "0"


def _format_reasons(reasons: Counter[str]) -> str:
    worded = [(format_reason(reason) or "no usable response", count) for reason, count in reasons.most_common(8)]
    return ", ".join(f"{words}: {count}" for words, count in worded)


def _remark_problems(result: app.CrawlResult) -> None:
    for domain, suspension in result.shift.suspensions.items():
        until, reason = format_when(suspension.until, now=result.at), format_reason(suspension.reason)
        if suspension.reason == app.BAD_PATTERN:
            reason = f"a pattern in its settings can no longer be used; for details: recrawl domains show {domain}"
        remark(f"recrawl: {domain} is suspended until {until}: {reason}")
    for url, reason in result.exclusions.items():
        remark(f"recrawl: {url} was not fetched: {reason}")
    for domain, error in result.shift.broken.items():
        remark(f"recrawl: the crawl of {domain} failed with an internal error; it is suspended for an hour: {error}")
    for domain in sorted(set(result.shift.lost)):
        remark(f"recrawl: another worker took over {domain}; visits recorded before that are kept")
    if result.was_stopped:
        left = "" if result.pages_left is None else f", {format_count(result.pages_left, 'page')} left"
        remark(f"recrawl: stopped{left}; all finished visits are recorded. Run the same command again to continue")
    for domain in sorted(result.problem_domains):
        remark(f"recrawl: {domain} {result.idle_reasons[domain]}")


def _describe_result(result: app.CrawlResult) -> dict[str, object]:
    shift, named = result.shift, result.domains or ()
    return {
        "at": result.at,
        "domains": sorted({*(domain.authority for domain in named), *shift.by_domain}),
        **shift.stats.as_dict(),
        "by_domain": {domain: stats.as_dict() for domain, stats in sorted(shift.by_domain.items())},
        "suspensions": shift.suspensions,
        "lost_leases": sorted(set(shift.lost)),
        "errors": shift.broken,
        "idle_reasons": result.idle_reasons,
        "excluded_urls": result.exclusions,
        **pick_fields(result, "next_due_at", "was_stopped", "pages_left"),
    }
