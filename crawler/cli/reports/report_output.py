"""Output of recrawl report: freshness, its accuracy, and the cost."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crawler.app import reports
from crawler.cli.options import NO_DOMAIN
from crawler.cli.output import print_json, print_outcome, remark, say, show_facts, show_rows, show_table
from crawler.cli.reports.reports import describe_agreement
from crawler.cli.session import Interrupts, run_on_database, settings
from crawler.format.domain_settings import format_setting
from crawler.format.lists import format_lists
from crawler.format.reasons import format_reason
from crawler.format.trust import format_trust
from crawler.format.values import format_bytes, format_count, format_instant, format_share, format_span, format_when
from crawler.json_lines import get_field_values

FAILED_NOTE = (
    " without a usable response: none, an error such as 404, a redirect that is temporary or not yet confirmed, "
    "or a withheld response"
)
COUNTS = ("fetched", "unfetched", "gone", "dead links", "moved", "visits")  # columns with a field of the same name
WITHHELD_NOTE = (
    " with new content that may be an error page; within two days, recrawl accepts it or reports the page gone"
)


def show_reports(text: str | None, *, days: float, at: datetime | None, as_json: bool) -> None:
    window = timedelta(days=days)
    full_reports, waiting, lacks_worker = run_on_database(
        lambda db, _: reports.report_domains(db, text, window=window, at=at)
    )
    if as_json:
        print_json({"domains": [_describe_report(each) for each in full_reports]})
        return
    if not full_reports:
        say(NO_DOMAIN)
    elif text is not None:
        show_facts(_list_facts(full_reports[0]))
    else:
        _show_report_table([(each.domain_report, each.calibration) for each in full_reports], window)
    if lacks_worker:
        remark("Due pages wait because no worker is running: recrawl up, or recrawl crawl --due")
    if full_reports and text is not None:
        _show_sources(full_reports[0].sources)
    for line in waiting:
        remark(line)


def write_html(text: str | None, folder: Path, *, at: datetime | None, as_json: bool) -> None:
    """Write the HTML report of one domain, or of all."""
    from crawler.server import WriteResult, write_pages  # only this output needs the server

    async def work(db: reports.AppDatabase, _: Interrupts) -> WriteResult:
        return await write_pages(db, await reports.find_domains(db, text, at=at), folder, at=at or datetime.now(UTC))

    written = run_on_database(work)
    document = {"index": str(written.index), "files": written.files}
    print_outcome(document, f"{written.files} pages: {written.index}", as_json=as_json)


def _describe_report(full_report: reports.FullReport) -> dict[str, object]:
    domain_report, calibration = full_report.domain_report, full_report.calibration
    shadow_price = reports.get_shadow_price(settings(), domain_report)
    return get_field_values(domain_report) | {
        "changes": dict(domain_report.changes),
        "price": shadow_price,
        "is_default_price": shadow_price is not None and domain_report.shadow_price is None,
        "calibration": {name: describe_agreement(getattr(calibration, name)) for name in ("audits", "scheduled")},
        "trust": full_report.standings,
        "lists": full_report.lists,
        "sources": full_report.sources,
    }


def _list_facts(full_report: reports.FullReport) -> list[tuple[str, str]]:
    report, calibration = full_report.domain_report, full_report.calibration
    shadow_price, next_at = reports.get_shadow_price(settings(), report), reports.find_next_fetch_time(report)
    default_note = " (the default)" if report.shadow_price is None else ""
    min_value = "" if shadow_price is None else f"{shadow_price:.3g} importance x days per request{default_note}"
    changes = ", ".join(f"{change.value}: {count}" for change, count in sorted(report.changes.items()))
    sent = report.received_bytes + report.saved_bytes
    saved_share = f" ({report.saved_bytes / sent:.0%})" if sent else ""
    suspended = f"{format_when(report.suspended_until, now=report.at)}: {format_reason(report.suspension_reason)}"
    is_counted_earlier = report.at - report.counted_at > timedelta(minutes=1)
    deferred = f", {report.deferred} of them deferred" if report.deferred else ""
    return [
        ("Domain", report.domain + (" (paused)" if report.paused else "")),
        ("Time", format_instant(report.at)),
        ("Pages counted", format_when(report.counted_at, now=report.at) if is_counted_earlier else ""),
        ("TLS", format_setting("insecure_tls", report.insecure_tls)),
        ("Fresh (by importance)", format_share(report.freshness)),
        ("Fresh (equal weights)", format_share(report.freshness_plain)),
        ("Audits", _format_agreement(calibration.audits) or "none yet; run recrawl audit"),
        ("Scheduled visits", _format_agreement(calibration.scheduled)),
        ("Oldest last visit", format_when(report.oldest_visit_at, now=report.at)),
        ("Fetched", format_count(report.fetched, "page")),
        ("Unfetched", f"{report.unfetched}{deferred}"),
        ("Gone", str(report.gone)),
        ("Dead links", str(report.dead_links)),
        ("Moved", str(report.moved)),
        ("Excluded", str(report.excluded)),
        ("Withheld", f"{format_count(report.withheld, 'page')}{WITHHELD_NOTE}" if report.withheld else ""),
        ("Sitemaps and feeds", format_lists(full_report.lists)),
        ("", " "),
        ("In the last", format_span(report.window)),
        ("Visits", f"{report.visits} ({report.requests} requests)"),
        ("Changes", changes or "none"),
        ("Failed", format_count(report.failures, "visit") + (FAILED_NOTE if report.failures else "")),
        ("Received", format_bytes(report.received_bytes)),
        ("Traffic saved", format_bytes(report.saved_bytes) + saved_share),
        ("ETag and dates", format_trust(full_report.standings)),
        (" ", " "),
        (_format_day_label(report), f"{report.spent_today}{_format_budget(report)}, including robots.txt and retries"),
        ("Maximum age", format_setting("max_age", report.max_age)),
        ("Freshness target", format_setting("target_freshness", report.target_freshness)),
        ("Revisit policy", report.revisit if shadow_price is None else ""),
        ("Min value of a visit", min_value),
        ("Finding", report.finding),
        ("Suspended until", suspended if report.suspended_until else ""),
        ("Being crawled by", report.holder or ""),
        ("Next due", format_when(next_at, now=report.at) if next_at else ""),
    ]


def _format_day_label(domain_report: reports.DomainReport) -> str:
    """Return the label of the requests on the day of the report, which --at can set to another day."""
    day = domain_report.at.astimezone(UTC).date()
    return "Requests today" if day == datetime.now(UTC).date() else f"Requests on {day}"


def _show_sources(sources: Sequence[reports.SourceReport]) -> None:
    """Print the sources of change signals with their precision and recall, if there are any."""
    if not sources:
        return
    numbers = ("signals", "recall", "precision")
    say("")
    rows = ((one.source, str(one.signals), format_share(one.recall), format_share(one.precision)) for one in sources)
    show_table(["signal source", *numbers], rows, right=numbers)


def _format_budget(domain_report: reports.DomainReport) -> str:
    if domain_report.budget_per_day is not None:
        return f" of {domain_report.budget_per_day}"
    needed = domain_report.target_requests_per_day
    return f" of {needed} that its target needs" if needed is not None else ""


def _format_agreement(agreement: reports.Agreement) -> str:
    if not agreement.visits:
        return ""
    is_off = f", off by {abs(agreement.deviations):.1f} standard deviations" if agreement.is_off else ""
    found, expected = format_share(agreement.found_fresh), format_share(agreement.expected_fresh)
    return f"{found} of {format_count(agreement.visits, 'visit')} found the copy fresh; expected {expected}{is_off}"


def _show_report_table(
    reports_with_calibration: Sequence[tuple[reports.DomainReport, reports.Calibration]], window: timedelta
) -> None:
    rows = [_format_report_row(each, calibration) for each, calibration in reports_with_calibration]
    show_rows(rows, right=rows[0].keys() - {"domain", "oldest visit", "next due"})
    days = sorted({f"{each.at.astimezone(UTC):%Y-%m-%d}" for each, _ in reports_with_calibration})
    say(
        f"\nVisits, changes, failures and bytes are of the last {format_span(window)}. Fresh is the expected share, "
        "weighted by importance; audited is the share that audits (visits to random pages) found, with equal weights. "
        f"Requests are of the UTC day {' and '.join(days)}."
    )
    for each, calibration in reports_with_calibration:
        if each.insecure_tls:
            remark(f"{each.domain}: TLS certificates are not checked (--insecure-tls)")
        if each.finding:
            remark(f"{each.domain}: {each.finding}")
        if each.withheld:
            remark(f"{each.domain}: {format_count(each.withheld, 'page')}{WITHHELD_NOTE}")
        if calibration.audits.is_off or calibration.scheduled.is_off:
            remark(f"{each.domain}: the predicted freshness is inaccurate; for details: recrawl report {each.domain}")


def _format_report_row(domain_report: reports.DomainReport, calibration: reports.Calibration) -> dict[str, str]:
    next_at = reports.find_next_fetch_time(domain_report)
    return {
        "domain": domain_report.domain,
        "fresh": format_share(domain_report.freshness),
        "audited": format_share(calibration.audits.found_fresh),
        **{name: str(getattr(domain_report, name.replace(" ", "_"))) for name in COUNTS},
        "changes": str(sum(count for change, count in domain_report.changes.items() if change != "added")),
        "failed": str(domain_report.failures),
        "received": format_bytes(domain_report.received_bytes),
        "saved": format_bytes(domain_report.saved_bytes),
        "requests": f"{domain_report.spent_today}"
        + (f"/{domain_report.budget_per_day}" if domain_report.budget_per_day is not None else ""),
        "oldest visit": format_instant(domain_report.oldest_visit_at) if domain_report.oldest_visit_at else "-",
        "next due": format_instant(next_at) if next_at else "-",
    }
