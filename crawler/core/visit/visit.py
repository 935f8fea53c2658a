"""One finished visit as values: the target, the knowledge about the domain, and what the visit changes."""

from datetime import datetime, timedelta
from enum import StrEnum
from operator import is_not

from msgspec import Struct, field

from crawler.core.change.change import Change, Evidence
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.change.verdict import Verdict
from crawler.core.freshness.estimates import NO_MAGNITUDES, ChangeMagnitudes, RateEstimate
from crawler.core.freshness.visit_terms import DEFAULT_TERMS, RequestReason, VisitTerms
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
from crawler.core.page.block import BlockList
from crawler.core.page.content import HtmlEnd
from crawler.core.page.lists.url_list import ListKind
from crawler.core.page.sample import Sample
from crawler.core.page.snapshot import Parsed, Snapshot, Version
from crawler.core.page.values import PageValue
from crawler.core.rendering.memory import NO_RENDERS, RenderMemory
from crawler.core.rendering.outcome import NO_RENDERING, RenderRecord
from crawler.core.soft_errors import NO_SOFT_ERRORS, SoftErrorMemory, SoftErrorSignals
from crawler.core.visit.state import State

HINT_PRIOR_WEIGHT, HINT_PRIOR_CHANCE = 5.0, 0.2  # prior of a list: this many hints, of which this share is true
MAX_RESOLVED = 20_000  # links of a domain that are kept resolved; about 10 MB
FIRST_RETRY = timedelta(hours=1)  # after a failed visit


ExternalLinks = tuple[tuple[Authority, int], ...]  # other domains, each with the number of distinct links


class Link(Struct, frozen=True):
    """A distinct in-domain link. exclusion: why it may not be followed, or ""."""

    key: PageKey
    url: Url
    exclusion: str = ""


class HeadOutcome(StrEnum):
    """The outcome of a HEAD request before a GET."""

    BODY_SKIPPED = "spared"  # the trusted ones of length and validators are unchanged, so no GET was sent
    DIFFERED = "differed"  # length or validators differ, so a GET followed
    USELESS = "useless"  # the server rejected the HEAD, or its Content-Length was not that of the body


class ListStats(Struct, frozen=True):
    """Statistics of a URL list (visit/lists.py). A hint is a change signal that it gave for a known page.

    kind: a ListKind, or "" if it was never read.
    value: what an informative read reveals on average, in pages of mean importance.
    reads, informative_reads: the number of reads, and of those that revealed new pages or changes.
    hints_checked, hints_true: the number of hints that a visit has checked, and of those that were true.
    hints_expected: the number of changes that were expected in these visits without the hints.
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
        """Return the probability that a hint reveals a change that was not expected anyway, 0 to 1."""
        confirmed = self.hints_true - self.hints_expected + HINT_PRIOR_WEIGHT * HINT_PRIOR_CHANCE
        return min(max(confirmed / (self.hints_checked + HINT_PRIOR_WEIGHT), 0.0), 1.0)


class ListResult(Struct, frozen=True):
    """The result of one visit to a URL list. The integers are numbers of entries.

    entries: all of them.  new_pages: unknown pages that may be fetched.  new_lists: further lists.
    hints: change signals of known pages.  others: URLs of other hosts, which are ignored.
    excluded: pages that may not be fetched.  unusable: entries without a URL that can be crawled.
    finding: why the list was not read to its end, or "".  is_same: whether it is the same as at its last read.
    value: the value of the list after this visit (ListStats).  is_informative: whether this read was informative.
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
    is_informative: bool = False


class Target(Struct, frozen=True):
    """A page that was dispatched under a lease, with all that is known about it."""

    key: PageKey
    url: Url
    depth: int  # distance from the nearest seed, in links
    state: State
    rate_estimate: RateEstimate
    terms: VisitTerms = DEFAULT_TERMS
    importance: float = 1.0  # the domain's mean is 1
    magnitudes: ChangeMagnitudes = NO_MAGNITUDES  # of the changes found so far
    requested: RequestReason = RequestReason.NONE
    cash: int = 0  # when the page was dispatched
    group: int = 0  # the group of pages that share a prior and the trust in validators
    validators: Validators = NO_VALIDATORS  # to be sent
    stored_validators: Validators = NO_VALIDATORS  # of the last successful response, whether they are sent or not
    is_validator_check: bool = False  # no validators are sent, to check whether they are reliable
    expected_head: Validators | None = None  # what a HEAD must repeat besides the length, if unchanged; None: no HEAD
    sends_head: bool = False  # a HEAD is sent first this time
    trusts_modified: bool = False  # Last-Modified has been honest in the group
    received_bytes: int = 0  # of the last successful response's body
    version: Version | None = None
    outlinks: tuple[PageKey, ...] = ()
    external_links: ExternalLinks = ()
    list_stats: ListStats | None = None  # of a sitemap or a feed
    status: int | None = None  # of the last visit
    reason: str = ""  # of the last visit
    visits: int = 0  # so far
    failures: int = 0  # failed visits in a row
    soft_errors: int = 0  # how many of the last failures in a row had the soft error that `reason` names
    withheld_since: datetime | None = None  # since when other content is withheld as a soft error
    last_visit_at: datetime | None = None
    last_good_at: datetime | None = None  # the last successful visit
    missing_since: datetime | None = None  # when the first 404 was found that no later response confirmed or refuted
    redirects: int = 0  # number in a row that lead from a page's link to this URL; 0 if a page links to it directly
    due_at: datetime | None = None
    activity_ahead: float = 0.0  # days by which site activity exceeds the calendar since the last successful visit
    signals: tuple[int, ...] = ()  # change signals since the last successful visit, per source (terms.sources)


class ResolvedLinks(Struct, eq=False):
    """Links that were resolved with one scope and one robots.txt, since most pages of a site have the same menu."""

    basis: tuple[object, ...] = ()
    links: dict[tuple[Url, int], Link | None] = field(default_factory=dict)

    def choose(self, *basis: object) -> dict[tuple[Url, int], Link | None]:
        """Return the links resolved with these objects, without any if there are too many."""
        if len(self.links) >= MAX_RESOLVED or any(map(is_not, self.basis, basis)) or not self.basis:
            self.basis, self.links = basis, {}
        return self.links


class DomainKnowledge(Struct, frozen=True):
    """Knowledge about a domain during a lease; an immutable copy, except for `resolved`, which only saves time."""

    scope: Scope
    rules: RobotsRules
    agent: str
    mask: NoiseMask = NO_MASK  # hides what does not count as a change
    soft_errors: SoftErrorMemory = NO_SOFT_ERRORS  # texts it returns instead of its pages
    renders: RenderMemory = NO_RENDERS  # what rendering added
    resolved: ResolvedLinks = field(default_factory=ResolvedLinks)


class Baseline(Struct, frozen=True):
    """The blocks that a page is compared with: of the last Snapshot, and of second fetches in this visit.

    at: when the Snapshot was taken.  has_returned: whether the page equals an older version.
    html_end, has_password_field: those of the Snapshot's body; set only if the current page shows such a sign of a soft
    error (`add_soft_error_signs`).
    """

    blocks: BlockList
    at: datetime
    has_returned: bool = False
    html_end: HtmlEnd = HtmlEnd.CLOSED
    has_password_field: bool = False
    second_fetches: tuple[BlockList, ...] = ()


class VerdictInputs(Struct, frozen=True):
    """The inputs of a verdict, kept to decide again when more is known about the domain."""

    response: Fetched
    parsed: Parsed
    baseline: Baseline


UNKNOWN_VERDICT = Verdict(Change.UNKNOWN, Evidence.STATUS)
OUTCOMES = {Fetched: "fetched", NotModified: "not_modified", Unreached: "unreached", type(None): "fetched"}


class Visit(Struct, frozen=True):
    """One finished visit and all that it changes. The store applies it without further decisions.

    None in validators, links, external_links, snapshot or mask means no change.
    links: the in-domain links of the page.
    recipients: the pages that get the page's cash in equal parts; None keeps the cash on the page.
    external_links: links to other domains, to which a part of the cash goes if the user gives them a weight.
    """

    target: Target
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
    soft_errors: int = 0  # visits in a row, including this one, with the soft error that `reason` names
    # Since when other content is withheld as a soft error; the store clears it after a successful visit.
    withheld_since: datetime | None = None
    extra_requests: int = 0  # second fetches and not-found probes
    received_bytes: int = 0
    saved_bytes: int = 0  # size of the body that was not sent again
    elapsed: timedelta = timedelta(0)
    conditional: bool = False  # whether validators were sent
    magnitude: float | None = None  # of the change that was found: the share of the page that changed, 0 to 1
    magnitudes: ChangeMagnitudes = NO_MAGNITUDES  # of all changes found, including this one
    expected_change: float | None = None  # predicted probability of a change before the visit, 0 to 1
    modified_honest: bool | None = None  # whether Last-Modified agrees with the body; None: no evidence
    refused_304: bool | None = None  # whether old validators, sent after a change, got a body; None: not tested
    head_outcome: HeadOutcome | None = None
    validators: Validators | None = None
    body_bytes: int | None = None
    snapshot: Snapshot | None = None
    links: tuple[Link, ...] | None = None
    recipients: tuple[PageKey, ...] | None = None
    external_links: ExternalLinks | None = None
    moved_to: Link | None = None
    canonical: PageKey | None = None  # the canonical page that it names
    feeds: tuple[Link, ...] = ()  # the site's feeds that it lists
    list_result: ListResult | None = None  # of a URL list that was read
    led_to: PageKey | None = None  # the target of a redirect; for a temporary one only if it is in the domain
    overloaded: bool = False  # 429 or 503: the domain needs a back-off
    retry_after: timedelta | None = None  # the wait that the server requested
    mask: NoiseMask | None = None  # of the domain after this visit; None: unchanged
    verdict_inputs: VerdictInputs | None = None  # set if the page changed
    signals: SoftErrorSignals | None = None  # by which a soft error was recognized or not
    sample: Sample | None = None  # of the text of a page that is read for the first time
    rendering: RenderRecord = NO_RENDERING
    no_response: bool = False  # a network failure; if other pages also fail, it concerns the whole domain
    missing_since: datetime | None = None  # the first 404; the store clears it after a successful visit
    values: tuple[PageValue, ...] = ()  # read from the page, by the user's rules

    @property
    def change(self) -> Change:
        return self.verdict.change

    @property
    def reported_change(self) -> Change:
        """Return the change to report. An excluded page that may be fetched again is reported as restored."""
        was_excluded = self.target.state is State.EXCLUDED and self.target.version is not None
        return Change.RESTORED if was_excluded and self.is_good and self.state is State.FETCHED else self.change

    @property
    def is_server_error(self) -> bool:
        """Return whether the server failed (5xx but 503). If other pages also fail, it concerns the whole domain."""
        return self.status is not None and self.status >= 500 and not self.overloaded and not self.is_good

    @property
    def next_request(self) -> RequestReason:
        """Return why the next visit is requested: to confirm a first 404, or NONE.

        If the end of the lease interrupted this visit, the next one has the reason of this one, except BY_DEADLINE.
        """
        requested = self.target.requested
        if self.reason == FailureReason.LEASE and not self.is_good and requested is not RequestReason.BY_DEADLINE:
            return requested
        is_first_404 = self.status == 404 and not self.is_good and self.missing_since
        return RequestReason.TO_CONFIRM if is_first_404 else RequestReason.NONE

    @property
    def is_good(self) -> bool:
        """Return whether the visit was successful: it determined the current content or state of the page."""
        return self.verdict.change is not Change.UNKNOWN


def find_exclusion(url: Url, *, depth: int, knowledge: DomainKnowledge, is_list: bool = False) -> str:
    """Return why a page of this domain may not be fetched, or "".

    Include patterns, URL filters and the maximum depth do not apply to lists, because a list concerns the whole site.
    Exclude patterns and robots.txt do apply.
    """
    exclusion = knowledge.scope.find_exclusion(url, 0 if is_list else depth)
    applies = not is_list or exclusion not in {ExclusionReason.NOT_INCLUDED, ExclusionReason.URL_FILTER}
    if exclusion is not None and applies:
        return exclusion.value
    return "" if knowledge.rules.allows(url, knowledge.agent) else FailureReason.ROBOTS.value


def build_unchanged_visit(target: Target, response: Response | None = None, *, now: datetime) -> Visit:
    """Build the Visit after which nothing new is known; all other Visits are derived from it.

    An excluded page that has a version and may be fetched again stays excluded until a successful response, so that its
    return is reported.
    response: None if no response decides the visit.
    """
    is_unread = target.state is State.UNFETCHED or (target.state is State.EXCLUDED and target.version is None)
    return Visit(
        target=target,
        at=now,
        outcome=OUTCOMES[type(response)],
        state=State.FETCHED if is_unread else target.state,
        rate_estimate=target.rate_estimate,
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
