"""The first page: every domain with its freshness against its target and what that costs, and what changed of late."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.core.domain import Domain
from crawler.core.freshness import DAY
from crawler.server.at_once import at_once
from crawler.server.ui.plots import Dot, Line, Plot
from crawler.store import domains, plan, report, subscriptions
from crawler.store.database import Database
from crawler.store.plan import Calibration
from crawler.store.report import KEPT_FOR, DomainReport, PastFreshness
from crawler.store.subscriptions import SubscriptionState

WINDOW = timedelta(days=30)  # that figures are summed over, as `recrawl report` does
INSTANTS = 30  # at which past freshness is reckoned
DOMAINS_SHOWN = 24  # on one page
PAST_PAGES = 500  # by which past freshness is told, half of them the most important ones
UNTOLD = timedelta(hours=1)  # after which somebody is not told: whoever tells does so every few minutes
CARD_PAGES, CARD_INSTANTS = 200, 15  # likewise, where a page shows many domains, and each small


@dataclass(frozen=True, slots=True)
class DomainCard:
    """One domain in short. past: its freshness over the window, today's report last."""

    domain: Domain
    report: DomainReport
    calibration: Calibration
    past: tuple[PastFreshness, ...]

    @property
    def saved_share(self) -> float | None:
        """The part of all bytes that were not sent for validators and the like."""
        whole = self.report.received_bytes + self.report.saved_bytes
        return self.report.saved_bytes / whole if whole else None

    @property
    def is_below(self) -> bool:
        """Whether the copy is less fresh than its user wants."""
        target, fresh = self.report.target_freshness, self.report.freshness
        return target is not None and fresh is not None and fresh < target

    @property
    def plot(self) -> Plot:
        """Freshness over time, against the target."""
        return freshness_plot(self)


@dataclass(frozen=True, slots=True)
class UncountedCard:
    """A large domain that was never counted before, and is now. tracked: its pages, whatever became of them."""

    domain: Domain
    tracked: int


FindCard = Callable[[Domain], Awaitable[DomainCard | UncountedCard | None]]  # None for one that was removed meanwhile


@dataclass(frozen=True, slots=True)
class HomeFacts:
    """What the first page shows. more: the name after which the next domains stand; empty where these are the last.

    uncounted: those of its domains that are being counted.  untold: subscriptions that fail, or gave messages up.
    """

    at: datetime
    cards: tuple[DomainCard, ...]
    count: int
    more: str
    uncounted: tuple[UncountedCard, ...] = ()
    untold: tuple[SubscriptionState, ...] = ()


async def home_facts(
    db: Database, find_card: FindCard, *, at: datetime, after: str = "", most: int = DOMAINS_SHOWN
) -> HomeFacts:
    """The domains by name, those that follow `after`."""
    following = await domains.named_after(db, after, most=most + 1)
    async with at_once() as tasks:  # several connections: a page of small domains is many short questions
        asked = [tasks.create_task(_carded(find_card, domain)) for domain in following[:most]]
    cards = [each.result() for each in asked]
    more = following[most - 1].authority if len(following) > most else ""
    return HomeFacts(
        at=at,
        cards=tuple(card for card in cards if isinstance(card, DomainCard)),
        count=await report.count_domains(db),
        more=more,
        uncounted=tuple(card for card in cards if isinstance(card, UncountedCard)),
        untold=tuple(each for each in await subscriptions.states(db) if _is_in_trouble(each, at=at)),
    )


def _is_in_trouble(state: SubscriptionState, *, at: datetime) -> bool:
    since = state.untold_since(at=at)
    return bool(state.failures or state.dead or (since is not None and at - since > UNTOLD))


async def _carded(find_card: FindCard, domain: Domain) -> DomainCard | UncountedCard | None:
    return await find_card(domain)


async def card_of(
    db: Database,
    domain: Domain,
    *,
    at: datetime,
    window: timedelta = WINDOW,
    sample: int = PAST_PAGES,
    instants: int = INSTANTS,
    kept_for: timedelta = KEPT_FOR,
) -> DomainCard | None:
    """One domain in short; None if it was removed meanwhile.

    sample: pages by which past freshness is told, at so many instants.  kept_for: as in report.domain_report.
    """
    found = await report.domain_report(db, domain, at=at, window=window, kept_for=kept_for)
    if found is None:
        return None
    today = found.at.astimezone(UTC).date()
    past = await report.freshness_over_time(
        db,
        domain,
        instants=_instants(domain, found.at, window, count=instants),
        by_rank=sample // 2,
        by_chance=sample // 2,
    )
    if found.freshness is not None and found.freshness_plain is not None:
        now = PastFreshness(
            at=found.at, pages=found.known, freshness=found.freshness, freshness_plain=found.freshness_plain
        )
        past = [*past, now]
    return DomainCard(
        domain=domain,
        report=found,
        calibration=await plan.calibration(db, domain, since=today - max(window, DAY), until=today),
        past=tuple(past),
    )


def _instants(domain: Domain, until: datetime, window: timedelta, *, count: int) -> Sequence[datetime]:
    """Instants before `until`, evenly over the window, or over the domain's life where that is shorter."""
    length = min(window, max(until - domain.registered_at, timedelta(0)))
    return [until - length + length * n / count for n in range(count)]


def freshness_plot(card: DomainCard) -> Plot:
    """Freshness by importance over time, the target, and what audits of the window found, at its end."""
    found = [each for each in card.past if each.freshness is not None]
    points = tuple(
        Dot(
            each.at.timestamp(),
            100 * each.freshness,
            tells=f"{each.at.astimezone():%Y-%m-%d %H:%M}: {100 * each.freshness:.1f} % fresh",
        )
        for each in found
        if each.freshness is not None
    )
    lines = [Line("fresh, by importance", points)]
    target = card.report.target_freshness
    if target is not None and points:
        ends = (Dot(points[0].x, 100 * target), Dot(points[-1].x, 100 * target))
        lines.append(Line("target", ends, style="target"))
    audited = card.calibration.audits.found_fresh
    if audited is not None and points:
        dot = Dot(points[-1].x, 100 * audited, tells=f"audits found {100 * audited:.1f} % fresh")
        lines.append(Line("as audits found", (dot,), style="found", joined=False))
    least = min((dot.y for line in lines for dot in line.dots), default=0.0)
    return Plot(
        title="Freshness",
        summary=f"from {points[0].y:.1f} to {points[-1].y:.1f} per cent" if points else "no page has been read yet",
        x_label="time (UTC)",
        y_label="fresh, per cent",
        lines=tuple(lines),
        low=max(0.0, 10.0 * int(min(least, 89.0) // 10)),
        high=100.0,
        times=True,
    )
