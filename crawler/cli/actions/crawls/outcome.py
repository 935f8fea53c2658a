"""What a crawl has done, as a table or as a document."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from crawler.cli.output import print_json, remark, say, show, show_facts
from crawler.core.change import Change
from crawler.core.http import Url
from crawler.engine import BAD_PATTERN, CrawlStats, ShiftResult
from crawler.format.reasons import HEADINGS, format_reason
from crawler.format.values import format_bytes, format_count, format_when

MOST_NAMED = 10  # pages of each kind
NO_BROWSER = "no browser was found; `apt-get install chromium-headless-shell` brings one (docs/rendering.md)"


@dataclass(slots=True)
class CrawlOutcome:
    """What came of it. idle: domains that were not crawled, and why not; problems: those of them that should worry."""

    shift: ShiftResult
    at: datetime
    names: list[str]
    idle: dict[str, str] = field(default_factory=dict)
    problems: set[str] = field(default_factory=set)
    next_due_at: datetime | None = None
    signal: int | None = None
    refused: dict[Url, str] = field(default_factory=dict)  # URLs that were named and may not be asked for, and why not
    left: int | None = None  # looks that waited when a signal ended it

    @property
    def is_well(self) -> bool:
        return not (self.shift.holds or self.shift.lost or self.shift.broken or self.problems or self.refused)


def print_result(outcome: CrawlOutcome, *, as_json: bool) -> None:
    """The answer on stdout; what went wrong beside it on stderr, whatever the form of the answer."""
    _complain(outcome)
    if as_json:
        print_json(_document(outcome))
        return
    if outcome.shift.stats.requests == 0:
        if not outcome.idle:
            say("Nothing was due")
        _say_idle(outcome)
        return
    show_facts(facts(outcome.shift.stats))
    if len(outcome.shift.by_domain) > 1:
        say("")
        show(
            ["domain", "looked at", "changed", "first seen", "gone", "failed", "received"],
            [
                (
                    domain,
                    str(stats.looks),
                    str(stats.changes[Change.CHANGED]),
                    str(stats.changes[Change.FIRST]),
                    str(stats.changes[Change.GONE]),
                    str(stats.failed),
                    format_bytes(stats.received_bytes),
                )
                for domain, stats in sorted(outcome.shift.by_domain.items())
            ],
            right=["looked at", "changed", "first seen", "gone", "failed", "received"],
        )
    for line in named_pages(outcome.shift.stats):
        say(line)
    _say_idle(outcome)
    if outcome.next_due_at is not None and outcome.next_due_at > outcome.at:
        say(f"\nNext due: {format_when(outcome.next_due_at, now=outcome.at)}")
    if outcome.shift.stats.changes[Change.CHANGED]:
        remark("Next: recrawl changes shows what changed in them, word by word")


def _say_idle(outcome: CrawlOutcome) -> None:
    for domain, reason in outcome.idle.items():
        if domain not in outcome.problems:
            say(f"{domain} {reason}")


def named_pages(stats: CrawlStats) -> list[str]:
    """The pages that people want to hear of, under what was found of them; first looks are only format_count."""
    lines = []
    for change, heading in HEADINGS.items():
        pages = stats.pages[change][:MOST_NAMED]
        if not pages:
            continue
        lines += ["", f"{heading}:", *(f"  {page.url}{_shown_reason(page.reason)}" for page in pages)]
        more = stats.unnamed(change) + len(stats.pages[change]) - len(pages)
        if more:
            lines.append(f"  and {more:,} more")
    if stats.never_there:
        lines += ["", "Named, and not there:", *(f"  {url}" for url in stats.never_there[:MOST_NAMED])]
    return lines


def _shown_reason(reason: str) -> str:
    return f"  ({format_reason(reason)})" if reason else ""


def facts(stats: CrawlStats) -> list[tuple[str, str]]:
    """What a crawl did, line by line."""
    changes = stats.changes
    unchanged = changes[Change.SAME] + changes[Change.COSMETIC]
    not_modified = f" (not modified: {stats.not_modified})" if stats.not_modified else ""
    cosmetic = f" (cosmetic: {changes[Change.COSMETIC]})" if changes[Change.COSMETIC] else ""
    reasons = _shown_reasons(stats.reasons)
    outages = stats.outages.total()
    seconds = stats.elapsed.total_seconds()
    pace = f" ({stats.looks / seconds:.1f} pages a second)" if seconds >= 1 and stats.looks else ""
    return [
        ("Looked at", format_count(stats.looks, "page")),
        ("First seen", _explained(changes[Change.FIRST], "fetched for the first time")),
        ("Same", f"{unchanged}{not_modified}{cosmetic}"),
        ("Changed", str(changes[Change.CHANGED])),
        ("Gone", str(changes[Change.GONE])),
        ("Dead links", _explained(stats.dead_links, "nothing is there, and never was") if stats.dead_links else ""),
        ("Moved", str(changes[Change.MOVED] or "")),
        ("Back", str(changes[Change.BACK] or "")),
        ("Failed", f"{stats.failed} ({reasons})" if reasons else str(stats.failed)),
        ("Left alone", f"{format_count(outages, 'domain')} ({_shown_reasons(stats.outages)})" if outages else ""),
        (
            "Not asked for",
            f"{format_count(stats.refused, 'page')}, by robots.txt or its user's wish" if stats.refused else "",
        ),
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


def _complain(outcome: CrawlOutcome) -> None:
    for domain, hold in outcome.shift.holds.items():
        until = format_when(hold.until, now=outcome.at)
        why = format_reason(hold.reason)
        if hold.reason == BAD_PATTERN:
            why = f"a pattern of its settings is not used any more: recrawl domains show {domain} says which, and why"
        remark(f"recrawl: {domain} is suspended until {until}: {why}")
    for url, why in outcome.refused.items():
        remark(f"recrawl: {url} was not asked for: {why}")
    for domain, error in outcome.shift.broken.items():
        remark(f"recrawl: {domain} was ended by an error of recrawl's own, and is left alone for an hour: {error}")
    for domain in sorted(set(outcome.shift.lost)):
        remark(f"recrawl: {domain} was taken over by another worker; what was recorded before is kept")
    if outcome.signal is not None:
        left = "" if outcome.left is None else f", {format_count(outcome.left, 'page')} left"
        remark(f"recrawl: stopped{left}; all that was looked at is recorded, and the same command goes on from here")
    for domain in sorted(outcome.problems):
        remark(f"recrawl: {domain} {outcome.idle[domain]}")


def _document(outcome: CrawlOutcome) -> dict[str, object]:
    shift = outcome.shift
    return {
        "at": outcome.at,
        "domains": sorted({*outcome.names, *shift.by_domain}),
        **shift.stats.as_dict(),
        "by_domain": {domain: stats.as_dict() for domain, stats in sorted(shift.by_domain.items())},
        "holds": shift.holds,
        "lost": sorted(set(shift.lost)),
        "broken": shift.broken,
        "idle": outcome.idle,
        "refused_urls": outcome.refused,
        "next_due_at": outcome.next_due_at,
        "interrupted": outcome.signal is not None,
        "left": outcome.left,
    }
