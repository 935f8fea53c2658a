"""recrawl crawl: one crawl run in this process, from names to a table or a document of what was done."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crawler.app import crawl as app
from crawler.app.database import Database
from crawler.app.settings import SettingsPatch
from crawler.cli.delivery.notify_output import remark_failures
from crawler.cli.domains.register import ask_and_register
from crawler.cli.output import err, print_json, remark, say, show_facts, show_rows
from crawler.cli.progress import CrawlProgress
from crawler.cli.running.prune import remark_quotas
from crawler.cli.session import DONE, PROBLEM, Interrupts, settings, with_database
from crawler.clock import Clock
from crawler.format.reasons import HEADINGS, format_reason
from crawler.format.values import format_bytes, format_count, format_instant, format_when

NEARLY_NOW = timedelta(minutes=1)
MOST_NAMED = 10  # pages of each kind
NO_BROWSER = "no browser was found; `apt-get install chromium-headless-shell` brings one (docs/rendering.md)"


def crawl(
    names: Sequence[str], request: app.CrawlRequest, *, patch: SettingsPatch, due: bool, offline: bool, as_json: bool
) -> int:
    """Crawl what is named. request: without the event that stops it.  due: only what is due."""
    used, at = settings(), request.at

    async def work(db: Database, interrupts: Interrupts) -> tuple[app.CrawlResult, Interrupts]:
        clock = Clock.at(at)

        async def register(name: str) -> tuple[app.Domain, app.Fetched | None]:
            return await ask_and_register(db, name, patch, offline=offline, at=clock.now())

        targets = await app.find_targets(db, names, at=at, register=register, only_due=due)
        _remark_before(targets, patch, at=at)
        pending = (await app.count_due(db, targets.domains, at=clock.now()) if err().is_terminal else 0) or 0
        with CrawlProgress(pending=pending, most=request.max_pages) as progress:
            hooks, stoppable = app.ShiftHooks(progress=progress.count), replace(request, stop=interrupts.stop)
            result = await app.crawl(db, targets, stoppable, clock=clock, hooks=hooks)
        return result, interrupts

    # Every lease needs a connection for its records and one for its renewals.
    result, interrupts = with_database(work, connections=2 * used.leases_at_once + 2, patient=True)
    remark_quotas(result.pruned)
    _remark_notified(result)
    _print_result(result, as_json=as_json)
    return interrupts.exit_code or (DONE if result.is_well else PROBLEM)


def _remark_before(targets: app.Targets, patch: SettingsPatch, *, at: datetime | None) -> None:
    for domain in targets.known:
        if patch.differs_from(domain.settings):
            remark(f"{domain.authority} is registered: its settings stay (recrawl domains set {domain.authority})")
    if at is not None and at > datetime.now(UTC) + NEARLY_NOW:
        then = format_instant(at)
        remark(f"recrawl: what is read now counts as read at {then}; until then, go on with --at")


def _remark_notified(result: app.CrawlResult) -> None:
    done = result.delivered
    if done.messages:
        remark(f"Told: {format_count(done.changes, 'change')} in {format_count(done.messages, 'message')}")
    remark_failures(done)
    if result.notify_error:
        remark(f"recrawl: {result.notify_error}; recrawl notify run tells what was found")


def _print_result(result: app.CrawlResult, *, as_json: bool) -> None:
    """The answer on stdout; what went wrong beside it on stderr, whatever the form of the answer."""
    _complain(result)
    if as_json:
        print_json(_document(result))
        return
    if result.stats.requests == 0:
        if not result.idle:
            say("Nothing was due")
        _say_idle(result)
        return
    show_facts(_facts(result.stats))
    if len(result.shift.by_domain) > 1:
        say("")
        rows = (
            {
                "domain": domain,
                "looked at": str(stats.looks),
                "changed": str(stats.changes[app.Change.CHANGED]),
                "first seen": str(stats.changes[app.Change.FIRST]),
                "gone": str(stats.changes[app.Change.GONE]),
                "failed": str(stats.failed),
                "received": format_bytes(stats.received_bytes),
            }
            for domain, stats in sorted(result.shift.by_domain.items())
        )
        show_rows(rows, right=["looked at", "changed", "first seen", "gone", "failed", "received"])
    for line in _named_pages(result.stats):
        say(line)
    _say_idle(result)
    if result.next_due_at is not None and result.next_due_at > result.at:
        say(f"\nNext due: {format_when(result.next_due_at, now=result.at)}")
    if result.stats.changes[app.Change.CHANGED]:
        remark("Next: recrawl changes shows what changed in them, word by word")


def _say_idle(result: app.CrawlResult) -> None:
    for domain, reason in result.idle.items():
        if domain not in result.problems:
            say(f"{domain} {reason}")


def _named_pages(stats: app.CrawlStats) -> list[str]:
    """The pages that people want to hear of, under what was found of them; first looks are only counted."""
    lines = []
    for change, heading in HEADINGS.items():
        pages = stats.pages[change][:MOST_NAMED]
        if not pages:
            continue
        lines += ["", f"{heading}:"]
        lines += [f"  {page.url}{f'  ({format_reason(page.reason)})' if page.reason else ''}" for page in pages]
        more = stats.unnamed(change) + len(stats.pages[change]) - len(pages)
        if more:
            lines.append(f"  and {more:,} more")
    if stats.never_there:
        lines += ["", "Named, and not there:", *(f"  {url}" for url in stats.never_there[:MOST_NAMED])]
    return lines


def _facts(stats: app.CrawlStats) -> list[tuple[str, str]]:
    """What a crawl did, line by line."""
    changes = stats.changes
    unchanged = changes[app.Change.SAME] + changes[app.Change.COSMETIC]
    not_modified = f" (not modified: {stats.not_modified})" if stats.not_modified else ""
    cosmetic = f" (cosmetic: {changes[app.Change.COSMETIC]})" if changes[app.Change.COSMETIC] else ""
    reasons = _shown_reasons(stats.reasons)
    outages, refused = stats.outages.total(), format_count(stats.refused, "page")
    seconds = stats.elapsed.total_seconds()
    pace = f" ({stats.looks / seconds:.1f} pages a second)" if seconds >= 1 and stats.looks else ""
    return [
        ("Looked at", format_count(stats.looks, "page")),
        ("First seen", _explained(changes[app.Change.FIRST], "fetched for the first time")),
        ("Same", f"{unchanged}{not_modified}{cosmetic}"),
        ("Changed", str(changes[app.Change.CHANGED])),
        ("Gone", str(changes[app.Change.GONE])),
        ("Dead links", _explained(stats.dead_links, "nothing is there, and never was") if stats.dead_links else ""),
        ("Moved", str(changes[app.Change.MOVED] or "")),
        ("Back", str(changes[app.Change.BACK] or "")),
        ("Failed", f"{stats.failed} ({reasons})" if reasons else str(stats.failed)),
        ("Left alone", f"{format_count(outages, 'domain')} ({_shown_reasons(stats.outages)})" if outages else ""),
        ("Not asked for", f"{refused}, by robots.txt or its user's wish" if stats.refused else ""),
        ("Rendered", f"{format_count(stats.rendered, 'page')} in a browser" if stats.rendered else ""),
        ("Not rendered", f"{format_count(stats.browserless, 'page')}: {NO_BROWSER}" if stats.browserless else ""),
        ("Sitemap, feed", f"none at {format_count(stats.absent_lists, 'usual place')}" if stats.absent_lists else ""),
        ("New URLs found", _explained(stats.new, "linked or listed, not known before")),
        ("Received", f"{format_bytes(stats.received_bytes)} by {format_count(stats.requests, 'request')}"),
        ("Traffic saved", format_bytes(stats.saved_bytes)),
        ("Seconds", f"{seconds:.1f}{pace}"),
    ]


def _explained(count: int, means: str) -> str:
    return f"{count} ({means})" if count else "0"


def _shown_reasons(reasons: Counter[str]) -> str:
    return ", ".join(
        f"{format_reason(reason) or 'no good answer'}: {count}" for reason, count in reasons.most_common(8)
    )


def _complain(result: app.CrawlResult) -> None:
    for domain, hold in result.shift.holds.items():
        until = format_when(hold.until, now=result.at)
        why = format_reason(hold.reason)
        if hold.reason == app.BAD_PATTERN:
            why = f"a pattern of its settings is not used any more: recrawl domains show {domain} says which, and why"
        remark(f"recrawl: {domain} is suspended until {until}: {why}")
    for url, why in result.refused.items():
        remark(f"recrawl: {url} was not asked for: {why}")
    for domain, error in result.shift.broken.items():
        remark(f"recrawl: {domain} was ended by an error of recrawl's own, and is left alone for an hour: {error}")
    for domain in sorted(set(result.shift.lost)):
        remark(f"recrawl: {domain} was taken over by another worker; what was recorded before is kept")
    if result.was_stopped:
        left = "" if result.left is None else f", {format_count(result.left, 'page')} left"
        remark(f"recrawl: stopped{left}; all that was looked at is recorded, and the same command goes on from here")
    for domain in sorted(result.problems):
        remark(f"recrawl: {domain} {result.idle[domain]}")


def _document(result: app.CrawlResult) -> dict[str, object]:
    shift, named = result.shift, result.domains or ()
    return {
        "at": result.at,
        "domains": sorted({*(domain.authority for domain in named), *shift.by_domain}),
        **shift.stats.as_dict(),
        "by_domain": {domain: stats.as_dict() for domain, stats in sorted(shift.by_domain.items())},
        "holds": shift.holds,
        "lost": sorted(set(shift.lost)),
        "broken": shift.broken,
        "idle": result.idle,
        "refused_urls": result.refused,
        "next_due_at": result.next_due_at,
        "interrupted": result.was_stopped,
        "left": result.left,
    }
