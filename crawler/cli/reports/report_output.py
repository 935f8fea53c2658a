"""recrawl report: how fresh the copy is, how true that is, and what it costs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crawler.app import reports
from crawler.cli.options import NO_DOMAIN
from crawler.cli.output import print_json, print_outcome, remark, say, show, show_facts, show_rows
from crawler.cli.reports.reports import described
from crawler.cli.session import Interrupts, settings, with_database
from crawler.format.domain_settings import format_setting
from crawler.format.lists import format_lists
from crawler.format.reasons import format_reason
from crawler.format.trust import format_trust
from crawler.format.values import format_bytes, format_count, format_instant, format_share, format_span, format_when
from crawler.json_lines import values_of

FAILED_MEANS = " that did not get the page: no answer, an error such as 404, or a redirect for now"
WITHHELD_MEANS = " whose new content may stand in place of them; it is accepted after two days"
COUNTED_NOW = timedelta(minutes=1)


def report(text: str | None, *, days: float, at: datetime | None, as_json: bool) -> None:
    window = timedelta(days=days)

    found, waiting = with_database(lambda db, _: reports.report_domains(db, text, window=window, at=at))
    if as_json:
        print_json({"domains": [_document(each) for each in found]})
        return
    if not found:
        say(NO_DOMAIN)
    elif text is not None:
        show_facts(_facts(found[0]))
    else:
        _show_reports([(each.found, each.calibration) for each in found], window)
    if reports.lacks_worker(settings(), [each.found for each in found]):
        remark("What is due waits: no worker runs (recrawl up, or recrawl crawl --due)")
    if found and text is not None:
        _show_sources(found[0].sources)
    for line in waiting:
        remark(line)


def write_as_html(text: str | None, folder: Path, *, at: datetime | None, as_json: bool) -> None:
    """Write the pages of one domain, or of all."""
    from crawler.server import Written, write_pages  # no other form needs the server

    async def work(db: reports.Database, _: Interrupts) -> Written:
        return await write_pages(db, await reports.find_domains(db, text, at=at), folder, at=at or datetime.now(UTC))

    done = with_database(work)
    print_outcome({"index": str(done.index), "files": done.files}, f"{done.files} pages: {done.index}", as_json=as_json)


def _document(reported: reports.FullReport) -> dict[str, object]:
    found, calibration = reported.found, reported.calibration
    price = reports.price_in_force(settings(), found)
    return values_of(found) | {
        "changes": dict(found.changes),
        "price": price,
        "is_usual_price": price is not None and found.price is None,
        "calibration": {"audits": described(calibration.audits), "scheduled": described(calibration.scheduled)},
        "trust": reported.standings,
        "lists": reported.lists,
        "sources": reported.sources,
    }


def _facts(reported: reports.FullReport) -> list[tuple[str, str]]:
    found, calibration = reported.found, reported.calibration
    price, next_at = reports.price_in_force(settings(), found), reports.next_fetch_at(found)
    usual = " (the usual)" if found.price is None else ""
    changes = ", ".join(f"{change.value}: {count}" for change, count in sorted(found.changes.items()))
    sent = found.received_bytes + found.saved_bytes
    hold_until = format_when(found.hold_until, now=found.at)
    is_counted_earlier = found.at - found.counted_at > COUNTED_NOW
    return [
        ("Domain", found.domain + (" (paused)" if found.paused else "")),
        ("At", format_instant(found.at)),
        ("Pages counted", format_when(found.counted_at, now=found.at) if is_counted_earlier else ""),
        ("TLS", format_setting("insecure_tls", found.insecure_tls)),
        ("Fresh, by importance", format_share(found.freshness)),
        ("Fresh, all pages alike", format_share(found.freshness_plain)),
        ("As looks by chance found", _shown_agreement(calibration.audits) or "none: recrawl audit makes some"),
        ("As other looks found", _shown_agreement(calibration.scheduled)),
        ("Oldest look", format_when(found.oldest_look_at, now=found.at)),
        ("Pages looked at", str(found.known)),
        ("New, never fetched", f"{found.new}{f', {found.held_back} of them put off' if found.held_back else ''}"),
        ("Gone", str(found.gone)),
        ("Dead links", str(found.dead_links)),
        ("Moved", str(found.moved)),
        ("May not be fetched", str(found.refused)),
        ("Withheld", f"{format_count(found.withheld, 'page')}{WITHHELD_MEANS}" if found.withheld else ""),
        ("Sitemaps and feeds", format_lists(reported.lists)),
        ("", " "),
        ("In the last", format_span(found.window)),
        ("Looks", f"{found.looks} ({found.requests} requests)"),
        ("Changes", changes or "none"),
        ("Failed", format_count(found.failures, "look") + (FAILED_MEANS if found.failures else "")),
        ("Received", format_bytes(found.received_bytes)),
        ("Traffic saved", format_bytes(found.saved_bytes) + (f" ({found.saved_bytes / sent:.0%})" if sent else "")),
        ("ETag and dates", format_trust(reported.standings)),
        (" ", " "),
        (_of_day(found), f"{found.spent_today}{_shown_budget(found)}, robots.txt and tries among them"),
        ("Target", format_setting("target_age", found.target_age)),
        ("Target", format_setting("target_freshness", found.target_freshness)),
        ("Looked at again", f"by policy: {found.revisit}" if price is None else ""),
        ("Price", "" if price is None else f"{price:.3g} importance x days a request{usual}"),
        ("Finding", found.finding),
        ("Left alone until", f"{hold_until}: {format_reason(found.hold_reason)}" if found.hold_until else ""),
        ("Being crawled by", found.holder or ""),
        ("Next due", format_when(next_at, now=found.at) if next_at else ""),
    ]


def _of_day(found: reports.DomainReport) -> str:
    """The name of what was requested on the day of a report, which need not be the day of its reader."""
    day = found.at.astimezone(UTC).date()
    return "Requests today" if day == datetime.now(UTC).date() else f"Requests on {day}"


def _show_sources(sources: Sequence[reports.SourceFacts]) -> None:
    """Who says what has changed, and how far that is true: nothing where nobody does."""
    if not sources:
        return
    numbers = ("signals", "changes told", "signals true")
    say("")
    rows = [
        (each.source, str(each.signals), format_share(each.recall), format_share(each.precision)) for each in sources
    ]
    show(["source of signals", *numbers], rows, right=numbers)


def _shown_budget(found: reports.DomainReport) -> str:
    if found.budget_per_day is not None:
        return f" of {found.budget_per_day}"
    return f" of {found.asked_per_day} that its target takes" if found.asked_per_day is not None else ""


def _shown_agreement(agreement: reports.Agreement) -> str:
    if not agreement.looks:
        return ""
    is_off = f", off by {abs(agreement.deviations):.1f} standard deviations" if agreement.is_off else ""
    found, expected = format_share(agreement.found_fresh), format_share(agreement.expected_fresh)
    return f"{found} of {format_count(agreement.looks, 'look')} found a fresh copy, {expected} were expected to{is_off}"


def _show_reports(found: Sequence[tuple[reports.DomainReport, reports.Calibration]], window: timedelta) -> None:
    rows = [_report_row(each, calibration) for each, calibration in found]
    show_rows(rows, right=rows[0].keys() - {"domain", "oldest look", "next due"})
    days = sorted({f"{each.at.astimezone(UTC):%Y-%m-%d}" for each, _ in found})
    say(
        f"\nLooks, changes, failed looks and bytes of the last {format_span(window)}. Fresh is what is expected, by "
        "importance; by chance is what looks by chance (audits) found, each page alike. Requests are of the UTC day "
        f"{' and '.join(days)}."
    )
    for each, calibration in found:
        if each.insecure_tls:
            remark(f"{each.domain}: TLS is insecure, no certificate is checked (--insecure-tls)")
        if each.finding:
            remark(f"{each.domain}: {each.finding}")
        if each.withheld:
            remark(f"{each.domain}: {format_count(each.withheld, 'page')}{WITHHELD_MEANS}")
        if calibration.audits.is_off or calibration.scheduled.is_off:
            remark(f"{each.domain}: what is reported is off: recrawl report {each.domain}")


def _report_row(each: reports.DomainReport, calibration: reports.Calibration) -> dict[str, str]:
    next_at = reports.next_fetch_at(each)
    return {
        "domain": each.domain,
        "fresh": format_share(each.freshness),
        "by chance": format_share(calibration.audits.found_fresh),
        "looked at": str(each.known),
        "never fetched": str(each.new),
        "gone": str(each.gone),
        "dead links": str(each.dead_links),
        "moved": str(each.moved),
        "looks": str(each.looks),
        "changes": str(sum(count for change, count in each.changes.items() if change != "first")),
        "failed": str(each.failures),
        "received": format_bytes(each.received_bytes),
        "saved": format_bytes(each.saved_bytes),
        "requests": f"{each.spent_today}" + (f"/{each.budget_per_day}" if each.budget_per_day is not None else ""),
        "oldest look": format_instant(each.oldest_look_at) if each.oldest_look_at else "-",
        "next due": format_instant(next_at) if next_at else "-",
    }
