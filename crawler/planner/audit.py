"""Auditing: random samples of pages against what is reported of them, since a report that nobody checks may be off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.core.budget.constraints import AUDIT_SHARE
from crawler.core.domain import Domain
from crawler.core.freshness.calibration import Agreement, pool_agreements
from crawler.store import plan
from crawler.store.database import Database
from crawler.store.plan import Calibration

RECOUNT_SPAN = timedelta(days=2)  # finished UTC days whose looks are counted again: some were recorded after midnight
AUDIT_WINDOW = timedelta(days=30)  # over which audits are judged: few a day, in a small domain
MAX_DRAWN = 200  # pages of one domain a day: by 30 days, the share is known to half a point
ALL = "all domains"


@dataclass(frozen=True, slots=True)
class DomainAudit:
    """What an audit says of one domain. drawn: pages to be looked at, by chance.  calibration: of LOOKED_BACK."""

    domain: Domain
    drawn: int
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A report that does not agree with what was found. name: of the domain, or ALL.

    by_chance: audits found it; else all other looks did, and the chances of change are off, whatever freshness is
    reported.
    """

    name: str
    agreement: Agreement
    by_chance: bool

    @property
    def sentence(self) -> str:
        """The finding as a sentence for a person."""
        agreement = self.agreement
        what = f"The freshness reported for {self.name} is" if self.by_chance else f"What is expected of {self.name} is"
        return (
            f"{what} off: {agreement.visits:,} {'looks by chance' if self.by_chance else 'scheduled looks'}, "
            f"{_format_percent(agreement.expected_fresh)} of them expected to find a fresh copy, "
            f"{_format_percent(agreement.found_fresh)} found one ({abs(agreement.deviations):.1f} standard deviations)"
        )


async def audit_domains(db: Database, *, at: datetime, only: Domain | None = None) -> list[DomainAudit]:
    """Count what the looks of the last finished days found, judge them, and draw the next sample."""
    return [await _audit_domain(db, *each, at=at) for each in await plan.list_domains_to_audit(db, only=only)]


def list_findings(audits: Sequence[DomainAudit]) -> list[AuditFinding]:
    """Reports that are off, what audits found first: of domains, and of all together if there are several."""
    return [
        *_find_off(audits, lambda each: each.calibration.audits, by_chance=True),
        *_find_off(audits, lambda each: each.calibration.scheduled, by_chance=False),
    ]


def _find_off(
    audits: Sequence[DomainAudit], part: Callable[[DomainAudit], Agreement], *, by_chance: bool
) -> list[AuditFinding]:
    agreements = [(str(each.domain.authority), part(each)) for each in audits]
    if len(audits) > 1:
        agreements.append((ALL, pool_agreements([part(each) for each in audits])))
    return [AuditFinding(name, agreement, by_chance) for name, agreement in agreements if agreement.is_off]


def _format_percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f} %"


async def _audit_domain(db: Database, domain: Domain, budget: int | None, *, at: datetime) -> DomainAudit:
    today = at.astimezone(UTC).date()
    await plan.count_calibration(db, domain, since=today - RECOUNT_SPAN, until=today)
    calibration = await plan.load_calibration(db, domain, since=today - AUDIT_WINDOW, until=today)
    sample_size = await _compute_sample_size(db, domain, budget, at=at)
    drawn = await plan.draw_sample(db, domain, max_pages=sample_size, at=at) if sample_size else []
    return DomainAudit(domain, len(drawn), calibration)


async def _compute_sample_size(db: Database, domain: Domain, budget: int | None, *, at: datetime) -> int:
    """Number of pages to draw: a hundredth of the day's requests, and one at least where any may be made."""
    if domain.paused or budget == 0:
        return 0
    yesterday = at.astimezone(UTC).date() - timedelta(days=1)
    requests = budget if budget is not None else await plan.count_requests(db, domain, day=yesterday)
    return min(max(int(AUDIT_SHARE * requests), 1), MAX_DRAWN)
