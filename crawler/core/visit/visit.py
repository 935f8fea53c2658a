"""One finished look, as values: what was asked, what is known meanwhile, and what the look changes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from crawler.core.change.change import Change, Evidence, Verdict
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.freshness.estimates import NO_MAGNITUDES, ChangeMagnitudes, RateEstimate
from crawler.core.freshness.terms import DEFAULT_TERMS, RequestReason, VisitTerms
from crawler.core.http.response import (
    NO_VALIDATORS,
    FailureReason,
    Fetched,
    NotModified,
    Response,
    Unreached,
    Validators,
)
from crawler.core.http.robots import RobotsRules
from crawler.core.http.urls import Authority, ExclusionReason, PageKey, Scope, Url
from crawler.core.novelty import Sample
from crawler.core.page.content import HtmlEnd
from crawler.core.page.lists.url_list import ListKind
from crawler.core.page.outline import BlockList
from crawler.core.page.snapshot import Parsed, Snapshot, Version
from crawler.core.rendering.memory import NO_RENDERS, RenderMemory
from crawler.core.rendering.outcome import NO_RENDERING, RenderRecord
from crawler.core.soft_errors import NO_SOFT_ERRORS, SoftErrorMemory, SoftErrorSignals

HINT_PRIOR_WEIGHT, HINT_PRIOR_CHANCE = (
    5.0,
    0.2,
)  # hints' worth of what is expected of a list that was never tested (SCHEDULING, 3)
FIRST_RETRY = timedelta(hours=1)  # after a look without a good answer
NEVER = datetime(9999, 12, 31, tzinfo=UTC)  # due time of a page that its user wants once only

ExternalLinks = tuple[tuple[Authority, int], ...]  # other domains, each with how many distinct links lead there

PERMANENT_REDIRECTS = frozenset({301, 308})
TEMPORARY_REDIRECTS = frozenset({300, 302, 303, 307})
OVERLOAD_STATUSES = frozenset({429, 503})
# What may be the whole domain's doing rather than one page's.
NETWORK_FAILURES = frozenset(
    {FailureReason.DNS, FailureReason.REFUSED, FailureReason.RESET, FailureReason.TLS, FailureReason.DEADLINE}
)


class State(StrEnum):
    """State of a URL. Each URL has a due time or, while new, a rank in the order of discovery."""

    UNFETCHED = "unfetched"  # never asked for
    FETCHED = "fetched"
    GONE = "gone"
    MOVED = "moved"
    EXCLUDED = "excluded"  # by robots.txt or by the domain's scope


class PageCategory(StrEnum):
    """What a page counts as in reports: its state, but for what never was a page (SQL: page_category)."""

    UNFETCHED = "unfetched"
    FETCHED = "fetched"
    GONE = "gone"
    DEAD_LINK = "dead_link"  # nothing is there, and never was
    MOVED = "moved"
    EXCLUDED = "excluded"
    UNREAD_LIST = "unread_list"  # a place where a sitemap or a feed is looked for, and none was read yet


AWAY = frozenset({State.GONE, State.MOVED})  # what is read again after these is back, however it changed meanwhile


@dataclass(frozen=True, slots=True)
class Link:
    """A distinct in-domain link, with why it may not be followed, or an empty string."""

    key: PageKey
    url: Url
    exclusion: str = ""


class HeadOutcome(StrEnum):
    """Outcome of a HEAD request that was sent before the body was asked for."""

    BODY_SKIPPED = "spared"  # length and date are as they were: no body was asked for
    DIFFERED = "differed"
    USELESS = "useless"  # the server refused it, or its length was not the body's


@dataclass(frozen=True, slots=True)
class ListStats:
    """What is known of a page that is a URL list (core/visit/lists).

    kind: a ListKind, or "" for one that was never read.  value: of a look that tells anything, in pages of mean
    importance.  reads, informative_reads: looks in which it was read, and those that told anything.  hints_checked:
    changes that it hinted at and that a look has tested since;  hints_true: those that were there;  hints_expected:
    those that were to be expected without it.
    """

    kind: str = ""
    value: float = 1.0
    reads: int = 0
    informative_reads: int = 0
    hints_checked: int = 0
    hints_true: int = 0
    hints_expected: float = 0.0

    @property
    def hint_value(self) -> float:
        """The chance that a hint tells of a change beyond what was to be expected anyway, 0 to 1."""
        confirmed = self.hints_true - self.hints_expected + HINT_PRIOR_WEIGHT * HINT_PRIOR_CHANCE
        return min(max(confirmed / (self.hints_checked + HINT_PRIOR_WEIGHT), 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class ListResult:
    """What one look at a URL list brought.

    entries: that it names.  new_pages: of these, pages that were not known and may be fetched.  new_lists: further
    lists.  hints: changes of known pages that it tells of.  others: on other hosts, which do not count.  excluded: that
    may not be fetched.  unusable: without a URL.  finding: why it was not read to its end, or "".
    is_same: the list says what it said when it was read last.
    value, has_told: of the list after this look (KnownList).
    """

    kind: ListKind
    entries: int = 0
    new_pages: int = 0
    new_lists: int = 0
    hints: int = 0
    others: int = 0
    excluded: int = 0
    unusable: int = 0
    finding: str = ""
    is_same: bool = False
    value: float = 1.0
    has_told: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A page handed out under a lease, with all that is known of it."""

    key: PageKey
    url: Url
    depth: int
    state: State
    belief: RateEstimate
    terms: VisitTerms = DEFAULT_TERMS
    importance: float = 1.0  # the domain's mean is 1
    magnitudes: ChangeMagnitudes = NO_MAGNITUDES  # of the changes found so far
    requested: RequestReason = RequestReason.NONE
    cash: int = 0  # coins, read at the claim
    group: int = 0  # of pages that share one prior and one trust in validators
    validators: Validators = NO_VALIDATORS  # to be sent
    stored_validators: Validators = NO_VALIDATORS  # of the last good answer, whether they are sent or not
    is_validator_check: bool = False  # no validator is sent, to see whether they are true
    expected_head: Validators | None = (
        None  # what a HEAD must repeat, beside the length, of an unchanged page; None: useless
    )
    sends_head: bool = False  # a HEAD is sent first, this time
    trusts_modified: bool = False  # the group's Last-Modified has been honest: it tells when a page changed
    received_bytes: int = 0  # of the last good answer's body
    version: Version | None = None
    outlinks: tuple[PageKey, ...] = field(default=(), repr=False)
    external_links: ExternalLinks = field(default=(), repr=False)
    list_stats: ListStats | None = None  # of a sitemap or a feed
    status: int | None = None  # of the last look
    reason: str = ""  # of the last look
    visits: int = 0  # so far
    failures: int = 0  # looks in a row without a good answer
    soft_errors: int = 0  # of these, the last ones that met the soft error that `reason` names
    withheld_since: datetime | None = None  # since when other content is withheld as a soft error's
    last_visit_at: datetime | None = None
    last_good_at: datetime | None = None
    missing_since: datetime | None = None  # the first 404, while no later response has decided
    redirects: int = 0  # that led to it one after another from a page's link; 0: a page links to it
    due_at: datetime | None = None  # when it was to be looked at
    activity_ahead: float = 0.0  # days of the site's activity beyond the calendar's since the last good look
    signals: tuple[int, ...] = ()  # since the last good look, by the number of their source (terms.sources)


@dataclass(frozen=True, slots=True)
class DomainKnowledge:
    """Knowledge about a domain while a lease lasts; an immutable copy."""

    scope: Scope
    rules: RobotsRules
    agent: str
    mask: NoiseMask = field(default=NO_MASK, repr=False)  # what of its pages does not count as a change
    soft_errors: SoftErrorMemory = field(default=NO_SOFT_ERRORS, repr=False)  # what it shows in place of its pages
    renders: RenderMemory = field(default=NO_RENDERS, repr=False)  # what a browser brought


@dataclass(frozen=True, slots=True)
class Baseline:
    """The blocks that a look is compared with: of the last Snapshot, and of second fetches seconds after this look.

    at: when the Snapshot was taken.  has_returned: the page is as it was in an even earlier version.
    html_end, has_password_field: of the Snapshot's body, filled in only where the page shows such a sign of a soft
    error now (`add_soft_error_signs`).
    """

    blocks: BlockList
    at: datetime
    has_returned: bool = False
    html_end: HtmlEnd = HtmlEnd.CLOSED
    has_password_field: bool = False
    second_fetches: tuple[BlockList, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictInputs:
    """The evidence of a verdict, kept to judge the look once more when more is known of its domain."""

    response: Fetched
    parsed: Parsed
    baseline: Baseline


UNKNOWN_VERDICT = Verdict(Change.UNKNOWN, Evidence.STATUS)
OUTCOMES = {Fetched: "fetched", NotModified: "not_modified", Unreached: "unreached", type(None): "fetched"}


@dataclass(frozen=True, slots=True)
class Visit:
    """One finished look and all that it changes. The store applies it as it stands.

    None in validators, links, external_links, snapshot or mask: stays as it was.
    links: in-domain links that the look makes known.  recipients: pages that the taken cash goes to, in equal parts;
    None keeps the cash on the page.  external_links: to other domains, which take their part if the user counts them.
    """

    target: Target = field(repr=False)
    at: datetime
    state: State
    rate_estimate: RateEstimate
    due_at: datetime
    failures: int
    verdict: Verdict = UNKNOWN_VERDICT
    outcome: str = "fetched"
    status: int | None = None
    reason: str = ""
    requests: int = 1
    soft_errors: int = 0  # looks in a row, with this one, that met the soft error that `reason` names
    withheld_since: datetime | None = None  # since when other content is withheld; nothing is after a good look
    extra_requests: int = 0  # for the page again, or for a URL that cannot exist
    received_bytes: int = 0
    saved_bytes: int = 0
    elapsed: timedelta = timedelta(0)
    conditional: bool = False
    magnitude: float | None = None  # of the change that was found: the part of the page that changed, 0 to 1
    magnitudes: ChangeMagnitudes = NO_MAGNITUDES  # of all changes found, with this one
    expected_change: float | None = None  # chance given for "changed" before the look, 0 to 1
    modified_honest: bool | None = None  # whether Last-Modified agrees with the body; None: nothing to compare
    refused_304: bool | None = None  # whether old validators, asked after a challenge, got a body; None: not asked
    head_outcome: HeadOutcome | None = None
    validators: Validators | None = None
    body_bytes: int | None = None
    snapshot: Snapshot | None = field(default=None, repr=False)
    links: tuple[Link, ...] | None = field(default=None, repr=False)
    recipients: tuple[PageKey, ...] | None = field(default=None, repr=False)
    external_links: ExternalLinks | None = field(default=None, repr=False)
    moved_to: Link | None = None
    canonical: PageKey | None = None  # the page that it names as the one that it is a copy of
    feeds: tuple[Link, ...] = field(default=(), repr=False)  # that the page names as the site's
    list_result: ListResult | None = None  # of a URL list that was read
    led_to: PageKey | None = None  # the target of a redirect; of one for now only if it is a page of the domain
    overloaded: bool = False  # 429 or 503: it is the domain that wants to be left alone
    retry_after: timedelta | None = None
    mask: NoiseMask | None = field(default=None, repr=False)  # of the domain, after this look; None: it taught nothing
    verdict_inputs: VerdictInputs | None = field(default=None, repr=False)  # of a change
    signals: SoftErrorSignals | None = field(default=None, repr=False)  # by which a soft error was looked for
    sample: Sample | None = field(default=None, repr=False)  # of what a page said that was never read before
    rendering: RenderRecord = NO_RENDERING
    no_response: bool = False  # no answer at all: this page's fault or, with others, the domain's
    missing_since: datetime | None = None  # the first 404 of a page that has a version; a good look ends it

    @property
    def change(self) -> Change:
        return self.verdict.change

    @property
    def reported_change(self) -> Change:
        """What is told of the look. A page that might not be fetched is back, and was judged like any other."""
        was_refused = self.target.state is State.EXCLUDED and self.target.version is not None
        return Change.RESTORED if was_refused and self.is_good and self.state is State.FETCHED else self.change

    @property
    def is_server_error(self) -> bool:
        """Whether the server failed (5xx but 503): this page's fault or, with others, the domain's."""
        return self.status is not None and self.status >= 500 and not self.overloaded and not self.is_good

    @property
    def next_request(self) -> RequestReason:
        """Return why the next visit is wanted whatever its value: to confirm a first 404, or for no reason.

        A visit that the end of its lease has cut off leaves the page as requested as it was.
        """
        if (
            self.reason == FailureReason.LEASE
            and not self.is_good
            and self.target.requested is not RequestReason.BY_DEADLINE
        ):
            return self.target.requested
        return (
            RequestReason.TO_CONFIRM
            if self.status == 404 and not self.is_good and self.missing_since
            else RequestReason.NONE
        )

    @property
    def is_good(self) -> bool:
        """Whether the look told what the page is now."""
        return self.verdict.change is not Change.UNKNOWN


def find_exclusion(url: Url, *, depth: int, knowledge: DomainKnowledge, is_list: bool = False) -> str:
    """Why a page of this domain may not be fetched, or an empty string.

    Patterns that the domain's pages must match say nothing of lists, nor does depth: like robots.txt a list is about
    the site. What its user excludes, and what robots.txt refuses, is not asked for.
    """
    exclusion = knowledge.scope.find_exclusion(url, 0 if is_list else depth)
    if exclusion is not None and not (
        is_list and exclusion in {ExclusionReason.NOT_INCLUDED, ExclusionReason.URL_FILTER}
    ):
        return exclusion.value
    return "" if knowledge.rules.allows(url, knowledge.agent) else FailureReason.ROBOTS.value


def build_unchanged_visit(target: Target, response: Response | None = None, *, now: datetime) -> Visit:
    """The Visit of a look after which nothing new is known; the start of all other Visits.

    response: None where no response decides the look.
    A page with a version that may be asked for again stays refused until a good response: so its return is told.
    """
    was_read = target.state is not State.UNFETCHED and (
        target.state is not State.EXCLUDED or target.version is not None
    )
    return Visit(
        target=target,
        at=now,
        outcome=OUTCOMES[type(response)],
        state=target.state if was_read else State.FETCHED,
        rate_estimate=target.belief,
        magnitudes=target.magnitudes,
        due_at=now + FIRST_RETRY,
        status=response.status if isinstance(response, Fetched) else None,
        failures=target.failures,
        missing_since=target.missing_since,
        withheld_since=target.withheld_since,
        received_bytes=response.received_bytes if isinstance(response, Fetched | Unreached) else 0,
        elapsed=response.elapsed if response else timedelta(0),
        conditional=bool(target.validators),
    )
