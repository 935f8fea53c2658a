"""Audits: visit random samples of pages to check the reported freshness."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from crawler.core.budget.constraints import AUDIT_SHARE
from crawler.core.domain import Domain
from crawler.core.freshness.calibration import Agreement, pool_agreements
from crawler.store import plan
from crawler.store.database import Database
from crawler.store.plan import Calibration

RECOUNT_SPAN = timedelta(days=2)  # the last UTC days are counted again: some visits are recorded after midnight
AUDIT_WINDOW = timedelta(days=30)  # period over which audits are judged: a small domain has few per day
MAX_DRAWN = 200  # pages of one domain per day: after 30 days, freshness is known to half a percentage point
ALL = "all domains"


class DomainAudit(Struct, frozen=True):
    """The audit of one domain. drawn: number of pages drawn at random.  calibration: results over AUDIT_WINDOW."""

    domain: Domain
    drawn: int
    calibration: Calibration


class AuditFinding(Struct, frozen=True):
    """A prediction that disagrees with what visits found. name: the domain, or ALL.

    by_chance: whether audit visits, to pages drawn at random, show that the freshness predicted for all pages is wrong.
    Otherwise scheduled visits show that the freshness predicted at these visits is wrong. Reports may be right all the
    same, because they are calibrated.
    """

    name: str
    agreement: Agreement
    by_chance: bool

    @property
    def sentence(self) -> str:
        """Return the finding as a sentence for users."""
        agreement = self.agreement
        what = "The freshness predicted" if self.by_chance else "The freshness predicted at scheduled visits"
        return (
            f"{what} for {self.name} is wrong: of {agreement.visits:,} {'audit' if self.by_chance else 'scheduled'} "
            f"visits, {_format_percent(agreement.expected_fresh)} were expected to find a fresh copy, and "
            f"{_format_percent(agreement.found_fresh)} did ({abs(agreement.deviations):.1f} standard deviations)"
        )


async def audit_domains(db: Database, *, at: datetime, only: Domain | None = None) -> list[DomainAudit]:
    """Count the visits of the last finished days, load the calibration, and draw today's random pages."""
    return [await _audit_domain(db, *each, at=at) for each in await plan.list_domains_to_audit(db, only=only)]


def list_findings(audits: Sequence[DomainAudit]) -> list[AuditFinding]:
    """Return predictions that are wrong, those shown by audits first, for each domain and for all together."""
    by_audits = [each.calibration.audits for each in audits]
    by_schedule = [each.calibration.scheduled for each in audits]
    return _list_wrong(audits, by_audits, by_chance=True) + _list_wrong(audits, by_schedule, by_chance=False)


def _list_wrong(audits: Sequence[DomainAudit], parts: list[Agreement], *, by_chance: bool) -> list[AuditFinding]:
    agreements = [(str(each.domain.authority), part) for each, part in zip(audits, parts, strict=True)]
    if len(audits) > 1:
        agreements.append((ALL, pool_agreements(parts)))
    return [AuditFinding(name, agreement, by_chance) for name, agreement in agreements if agreement.is_off]


def _format_percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f}".removesuffix(".0") + "%"


async def _audit_domain(db: Database, domain: Domain, budget: int | None, *, at: datetime) -> DomainAudit:
    today = at.astimezone(UTC).date()
    await plan.count_calibration(db, domain, since=today - RECOUNT_SPAN, until=today)
    calibration = await plan.load_calibration(db, domain, since=today - AUDIT_WINDOW, until=today)
    sample_size = await _compute_sample_size(db, domain, budget, at=at)
    drawn = await plan.draw_sample(db, domain, max_pages=sample_size, at=at) if sample_size else []
    return DomainAudit(domain, len(drawn), calibration)


async def _compute_sample_size(db: Database, domain: Domain, budget: int | None, *, at: datetime) -> int:
    """Return the number of pages to draw: AUDIT_SHARE of the budget or of yesterday's requests, at most MAX_DRAWN.

    A small budget has a draw on some days only; without a budget, there is at least one each day. None are drawn if the
    domain is paused.
    """
    if domain.paused:
        return 0
    today = at.astimezone(UTC).date()
    if budget is None:
        requests = await plan.count_requests(db, domain, day=today - timedelta(days=1))
        return min(max(int(AUDIT_SHARE * requests), 1), MAX_DRAWN)
    before, after = (int(AUDIT_SHARE * budget * day) for day in (today.toordinal(), today.toordinal() + 1))
    return min(after - before, MAX_DRAWN)
