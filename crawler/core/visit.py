"""One finished look: from what we knew and what the web said, to what we know now. Pure, so that it can be replayed."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from functools import partial
from typing import assert_never

from crawler.core import belief as beliefs
from crawler.core.answer import NO_VALIDATORS, Answer, Fetched, NotModified, Reason, Unreached, Validators
from crawler.core.belief import PRIOR, Belief
from crawler.core.change import Change, Rung, Snapshot, Understood, Verdict, Version, judge, understand
from crawler.core.fingerprint import digest
from crawler.core.page import Reading
from crawler.core.politeness import http_date, retry_after
from crawler.core.price import first_gap, interval
from crawler.core.robots import Rules
from crawler.core.urls import Authority, PageKey, Refusal, Scope, Url, authority_of, key_of

LOOKS_BEFORE_A_FAILING_PAGE_PAYS = 3  # then it settles as a leaf, so that nothing holds cash for ever
CONFIRM_MISSING_AFTER = timedelta(hours=1)  # a second 404 sooner than this may be the same accident
LOOK_AGAIN_MISSING = timedelta(days=1)
LOOK_AGAIN_REDIRECT = timedelta(days=7)
LOOK_AGAIN_GONE = timedelta(days=30)
LOOK_AGAIN_REFUSED = timedelta(days=7)  # costs no request while robots.txt or the scope still refuse
FIRST_RETRY = timedelta(hours=1)
FIRST_BUSY_RETRY = timedelta(minutes=1)
LAST_RETRY = timedelta(days=7)
MOST_LINKS = 5000  # of one page; the rest says nothing about importance any more
CLOCK_SLACK = timedelta(minutes=1)  # Last-Modified nearer to now than this is the clock's, not the page's
MOST_ELSEWHERE = 100  # other domains that one page links to

NEVER = datetime(9999, 12, 31, tzinfo=UTC)  # due time of a page that its user wants once only

Elsewhere = tuple[tuple[Authority, int], ...]  # other domains, each with how many distinct links lead there

PERMANENT = frozenset({301, 308})
TEMPORARY = frozenset({300, 302, 303, 307})
BUSY = frozenset({429, 503})
# What may be the whole domain's doing rather than one page's.
SILENCE = frozenset({Reason.DNS, Reason.REFUSED, Reason.RESET, Reason.TLS, Reason.DEADLINE})


class State(StrEnum):
    """Where a URL stands. Each has a due time or, when new, a place in the order of discovery."""

    NEW = "new"  # never asked for
    KNOWN = "known"
    GONE = "gone"
    MOVED = "moved"
    REFUSED = "refused"  # by robots.txt or by the domain's scope


@dataclass(frozen=True, slots=True)
class Link:
    """A distinct in-domain link, with why it may not be followed, or an empty string."""

    key: PageKey
    url: Url
    refusal: str = ""


class Wanted(IntEnum):
    """Whether a look is wanted whatever it is worth."""

    NO = 0
    BY_USER = 1
    BY_AUDIT = 2  # one of a random sample


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for a page's next look: how much it must be worth, and by when.

    price: importance x days that this look must be worth, with what it costs in it.  prior: what the page's group says.
    activity: how many times livelier than usual the domain is these days.  once: it is not to be looked at again.
    """

    price: float = 0.25
    least: timedelta = timedelta(minutes=10)
    most: timedelta = timedelta(days=180)
    prior: Belief = PRIOR
    activity: float = 1.0
    once: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A page handed out under a lease, with all that is known of it."""

    key: PageKey
    url: Url
    depth: int
    state: State
    belief: Belief
    terms: Terms = Terms()
    importance: float = 1.0  # the domain's mean is 1
    wanted: Wanted = Wanted.NO
    cash: int = 0  # coins, read at the claim
    validators: Validators = NO_VALIDATORS
    received_bytes: int = 0  # of the last good answer's body
    version: Version | None = None
    outlinks: tuple[PageKey, ...] = field(default=(), repr=False)
    elsewhere: Elsewhere = field(default=(), repr=False)
    status: int | None = None  # of the last look
    failures: int = 0  # looks in a row without a good answer
    last_look_at: datetime | None = None
    last_good_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What the domain knows while a lease lasts; an immutable copy."""

    scope: Scope
    rules: Rules
    agent: str
    trusts_modified: bool = False  # its Last-Modified has been honest: it tells when a page changed


@dataclass(frozen=True, slots=True)
class Visit:
    """What one look changes. The store applies it as it stands.

    None in validators, links, elsewhere, snapshot or last_good_at: stays as it was.
    links: what the look makes known.  gives: where the taken cash goes, in equal parts; None keeps the cash on the
    page. elsewhere: the links to other domains, which take their part if the user counts them.
    """

    target: Target = field(repr=False)
    at: datetime
    verdict: Verdict
    answer: str
    state: State
    belief: Belief
    due_at: datetime
    status: int | None
    reason: str
    failures: int
    requests: int
    received_bytes: int = 0
    saved_bytes: int = 0
    elapsed: timedelta = timedelta(0)
    conditional: bool = False
    expected_change: float | None = None  # what we gave for "changed" before we looked
    modified_honest: bool | None = None  # whether Last-Modified agrees with the body; None: nothing to compare
    validators: Validators | None = None
    body_bytes: int | None = None
    snapshot: Snapshot | None = field(default=None, repr=False)
    links: tuple[Link, ...] | None = field(default=None, repr=False)
    gives: tuple[PageKey, ...] | None = field(default=None, repr=False)
    elsewhere: Elsewhere | None = field(default=None, repr=False)
    moved_to: Link | None = None
    busy: bool = False  # 429 or 503: it is the domain that wants to be left alone
    retry_after: timedelta | None = None
    silent: bool = False  # no answer at all: this page's fault or, with others, the domain's

    @property
    def change(self) -> Change:
        return self.verdict.change

    @property
    def is_good(self) -> bool:
        """Whether the look told what the page is now."""
        return self.verdict.change is not Change.UNKNOWN


def refusal_of(url: Url, *, depth: int, known: Known) -> str:
    """Why a page of this domain may not be fetched, or an empty string."""
    refused = known.scope.refusal(url, depth)
    if refused is not None:
        return refused.value
    return "" if known.rules.allows(url, known.agent) else Reason.ROBOTS.value


def decide(
    target: Target, answer: Answer, *, now: datetime, known: Known, understood: Understood | None = None
) -> Visit:
    """What a look means: the same arguments always give the same Visit.

    now: the knowledge time at which the answer was complete.  understood: the answer's body, if it was read elsewhere
    already; it makes no difference to the result.
    """
    match answer:
        case NotModified():
            return _not_modified(target, answer, now=now)
        case Unreached():
            return _unreached(target, answer, now=now)
        case Fetched(status=status) if 200 <= status < 300:
            return _good(target, answer, now=now, known=known, understood=understood)
        case Fetched(status=status, location=location) if status in PERMANENT | TEMPORARY and location is not None:
            return _redirected(target, answer, now=now, known=known)
        case Fetched(status=404 | 410):
            return _missing(target, answer, now=now)
        case Fetched():
            return _failed(target, answer, now=now, reason=f"http_{answer.status}")
        case _:
            assert_never(answer)


def refuse(target: Target, *, reason: str, now: datetime) -> Visit:
    """A page that we may not ask for any more: no request, no part in the economy, looked at again in a week."""
    return Visit(
        target=target,
        at=now,
        verdict=Verdict(Change.UNKNOWN, Rung.STATUS),
        answer="unreached",
        state=State.REFUSED,
        belief=target.belief,
        due_at=now + LOOK_AGAIN_REFUSED,
        status=None,
        reason=reason,
        failures=target.failures,
        requests=0,
    )


def _not_modified(target: Target, answer: NotModified, *, now: datetime) -> Visit:
    if target.version is None:
        return _failed(target, answer, now=now, reason="unasked_304")
    verdict = Verdict(Change.SAME, Rung.NOT_MODIFIED)
    return replace(
        _looked(target, verdict, now=now),
        answer="not_modified",
        status=304,
        elapsed=answer.elapsed,
        saved_bytes=target.received_bytes,
        gives=target.outlinks,
    )


def needs_reading(target: Target, answer: Answer) -> bool:
    """Whether there is a body that must be read: a good one, other than the one that is known."""
    if not isinstance(answer, Fetched) or not 200 <= answer.status < 300:
        return False
    if not answer.body and target.version is not None and target.received_bytes > 0:
        return False
    version = target.version
    return version is None or target.state is not State.KNOWN or version.body_digest != digest(answer.body)


def unreadable(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """A body that whoever should read it has choked on."""
    return _failed(target, answer, now=now, reason="unreadable")


def _good(target: Target, answer: Fetched, *, now: datetime, known: Known, understood: Understood | None) -> Visit:
    if not answer.body and target.version is not None and target.received_bytes > 0:
        return _failed(target, answer, now=now, reason="empty_body")  # a page with content does not end like this
    before = target.version
    visit = partial(_fetched, answer=answer, validators=answer.validators, body_bytes=answer.received_bytes)
    if not needs_reading(target, answer):
        verdict = Verdict(Change.SAME, Rung.BYTES, 0)
        touched = modified_of(answer, now=now)
        lies = touched is not None and target.last_good_at is not None and touched > target.last_good_at + CLOCK_SLACK
        looked = visit(_looked(target, verdict, now=now))
        return replace(looked, gives=target.outlinks, modified_honest=False if lies else None)
    reading, after = _understood(target, answer, understood)
    links, elsewhere = links_of(reading, target=target, known=known)
    alias = _canonical(reading, links, known=known)
    verdict = judge(before, after)
    modified = modified_of(answer, now=now)
    if target.state in {State.GONE, State.MOVED} and before is not None:
        verdict = replace(verdict, change=Change.BACK)
    honest = _is_honest(target, modified, verdict.change, now=now)
    age = now - modified if modified is not None and honest and known.trusts_modified else None
    looked = visit(_looked(target, verdict, now=now, age=age))
    return replace(
        looked,
        links=links,
        gives=(alias,) if alias else tuple(link.key for link in links),
        elsewhere=() if alias else elsewhere,
        modified_honest=honest,
        snapshot=_snapshot(reading, answer, after, verdict) if _is_new_version(verdict, before, after) else None,
    )


def _understood(target: Target, answer: Fetched, understood: Understood | None) -> tuple[Reading, Version]:
    if understood is None:
        understood = understand(
            answer.body, url=target.url, content_type=answer.content_type, robots_tag=answer.robots_tag
        )
    number = target.version.number + 1 if target.version else 1
    return understood.reading, replace(understood.version, number=number)


def _is_new_version(verdict: Verdict, before: Version | None, after: Version) -> bool:
    if verdict.change is Change.BACK and before is not None:
        return after.main_digest != before.main_digest
    return verdict.change in {Change.FIRST, Change.CHANGED}


def _snapshot(reading: Reading, answer: Fetched, version: Version, verdict: Verdict) -> Snapshot:
    return Snapshot(
        version=version,
        title=reading.title,
        language=reading.language,
        content_type=answer.content_type,
        text=reading.main,
        body=answer.body,
        distance_bits=verdict.distance_bits,
    )


def links_of(reading: Reading, *, target: Target, known: Known) -> tuple[tuple[Link, ...], Elsewhere]:
    """The distinct links to pages of this domain, each with why it may not be followed, and those to other domains.

    The page itself is left out.
    """
    followed = () if reading.nofollow else (reading.refresh, *reading.links)
    found: dict[PageKey, Link] = {}
    elsewhere: dict[Authority, int] = {}
    for raw in filter(None, (reading.canonical, *followed)):
        link = _link(raw, target=target, known=known)
        if link is None:
            authority = authority_of(raw)
            if authority in elsewhere or len(elsewhere) < MOST_ELSEWHERE:
                elsewhere[authority] = elsewhere.get(authority, 0) + 1
        elif link.key != target.key:
            found.setdefault(link.key, link)
            if len(found) >= MOST_LINKS:
                break
    return tuple(found.values()), tuple(elsewhere.items())


def _canonical(reading: Reading, links: tuple[Link, ...], *, known: Known) -> PageKey | None:
    """The page whose copy this one says it is, if it may be fetched: all its cash goes there, as from a moved page."""
    if reading.canonical is None or not links or links[0].refusal:
        return None
    return links[0].key if links[0].url == known.scope.home(reading.canonical) else None


def _link(raw: Url, *, target: Target, known: Known) -> Link | None:
    """An in-domain link; None for one that leads elsewhere."""
    url = known.scope.home(raw)
    refusal = refusal_of(url, depth=target.depth + 1, known=known)
    if refusal == Refusal.OTHER_DOMAIN.value:
        return None
    return Link(key=key_of(url), url=url, refusal=refusal)


def _redirected(target: Target, answer: Fetched, *, now: datetime, known: Known) -> Visit:
    assert answer.location is not None
    link = _link(answer.location, target=target, known=known)
    if link is not None and link.key == target.key:
        return _failed(target, answer, now=now, reason="redirects_to_itself")
    if answer.status in TEMPORARY:
        # The page stays what it is; where it points today is a link like any other.
        return replace(
            _fetched(_kept(target, now=now), answer=answer),
            reason=f"http_{answer.status}",
            failures=0,
            due_at=now + LOOK_AGAIN_REDIRECT,
            links=(link,) if link else (),
            gives=(link.key,) if link else (),
            elsewhere=(),
        )
    already = target.state is State.MOVED
    return replace(
        _fetched(_kept(target, now=now), answer=answer),
        verdict=Verdict(Change.SAME if already else Change.MOVED, Rung.STATUS),
        state=State.MOVED,
        due_at=now + LOOK_AGAIN_GONE,
        reason="" if link else "moved_away",
        failures=0,
        moved_to=link,
    )


def _missing(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """404 is believed when it is confirmed, 410 at once; a page that never was there needs no second opinion."""
    confirmed = (
        answer.status == 410
        or target.version is None
        or target.state is State.GONE
        or (
            target.status == 404
            and target.last_look_at is not None
            and now - target.last_look_at >= CONFIRM_MISSING_AFTER
        )
    )
    if not confirmed:
        return replace(_failed(target, answer, now=now, reason="http_404"), due_at=now + LOOK_AGAIN_MISSING)
    already = target.state is State.GONE
    return replace(
        _fetched(_kept(target, now=now), answer=answer),
        verdict=Verdict(Change.SAME if already else Change.GONE, Rung.STATUS),
        state=State.GONE,
        due_at=now + min(LOOK_AGAIN_GONE, target.terms.most),
        reason=f"http_{answer.status}",
        failures=0,
    )


def _unreached(target: Target, answer: Unreached, *, now: datetime) -> Visit:
    if answer.reason is Reason.ROBOTS:
        return refuse(target, reason=answer.reason.value, now=now)
    return replace(
        _failed(target, answer, now=now, reason=answer.reason.value),
        answer="unreached",
        silent=answer.reason in SILENCE,
        received_bytes=answer.received_bytes,
        due_at=now + min(_retry(target.failures + 1), target.terms.most),
    )


def _failed(target: Target, answer: Answer, *, now: datetime, reason: str) -> Visit:
    """No good answer: nothing that was learnt is touched, and the page is tried again after a while."""
    kept = _kept(target, now=now)
    visit = replace(
        _fetched(kept, answer=answer) if isinstance(answer, Fetched) else replace(kept, elapsed=answer.elapsed),
        reason=reason,
        answer="not_modified" if isinstance(answer, NotModified) else "fetched",
    )
    if isinstance(answer, Fetched) and answer.status in BUSY:
        asked = retry_after(answer.retry_after, now=now, server_date=answer.date)
        # The page has its own back-off beside the domain's: if it alone is busy, others must come first next time.
        wait = min(FIRST_BUSY_RETRY * int(2 ** min(target.failures, 20)), LAST_RETRY)
        visit = replace(visit, busy=True, retry_after=asked, due_at=now + wait)
    failures = target.failures + 1
    return replace(
        visit,
        failures=failures,
        due_at=visit.due_at if visit.busy else now + _retry(failures),
        gives=() if failures >= LOOKS_BEFORE_A_FAILING_PAGE_PAYS else None,
    )


def _retry(failures: int) -> timedelta:
    return min(FIRST_RETRY * int(2 ** min(failures - 1, 20)), LAST_RETRY)


def _kept(target: Target, *, now: datetime) -> Visit:
    """A look after which we know what we knew before."""
    return Visit(
        target=target,
        at=now,
        verdict=Verdict(Change.UNKNOWN, Rung.STATUS),
        answer="fetched",
        state=State.KNOWN if target.state in {State.NEW, State.REFUSED} else target.state,
        belief=target.belief,
        due_at=now + FIRST_RETRY,
        status=None,
        reason="",
        failures=target.failures,
        requests=1,
        conditional=bool(target.validators),
    )


def _fetched(
    visit: Visit, *, answer: Fetched, validators: Validators | None = None, body_bytes: int | None = None
) -> Visit:
    return replace(
        visit,
        answer="fetched",
        status=answer.status,
        received_bytes=answer.received_bytes,
        elapsed=answer.elapsed,
        validators=validators,
        body_bytes=body_bytes,
    )


def modified_of(answer: Fetched, *, now: datetime) -> datetime | None:
    """When the page changed last, as its server says, on our clock: counted from the server's own Date."""
    told = http_date(answer.validators.last_modified)
    return None if told is None else now - ((http_date(answer.date) or now) - told)


def _is_honest(target: Target, modified: datetime | None, change: Change, *, now: datetime) -> bool | None:
    """Whether Last-Modified agrees with what became of the body since the last good look; None: nothing to compare.

    A body that changed was modified since then, and not this very minute, which is what a server says that stamps
    every answer. One whose main text is the same tells nothing: something else in it may have changed.
    """
    if modified is None or target.last_good_at is None or change is not Change.CHANGED:
        return None
    return bool(beliefs.is_believable((now - modified) / beliefs.DAY, (now - target.last_good_at) / beliefs.DAY))


def _looked(target: Target, verdict: Verdict, *, now: datetime, age: timedelta | None = None) -> Visit:
    """A good look: it teaches, and the next one is due when it will be worth its price.

    age: how long ago an honest Last-Modified says that the page changed.
    """
    belief, expected = _learnt(target, verdict.change, now=now, age=age)
    return replace(
        _kept(target, now=now),
        verdict=verdict,
        state=State.KNOWN,
        belief=belief,
        expected_change=expected,
        due_at=due_after(target, belief, verdict.change, now=now),
        failures=0,
    )


def due_after(target: Target, belief: Belief, change: Change, *, now: datetime) -> datetime:
    """When a page is due that was well looked at now. The first gap of pages that came in together is spread."""
    terms = target.terms
    if terms.once:
        return NEVER
    wait = interval(
        Belief(belief.a, belief.b / terms.activity),
        importance=target.importance,
        price=terms.price,
        least=terms.least,
        most=terms.most,
    )
    return now + (max(first_gap(wait, key=target.key), terms.least) if change is Change.FIRST else wait)


def _learnt(target: Target, change: Change, *, now: datetime, age: timedelta | None) -> tuple[Belief, float | None]:
    """The belief after this look, and the chance that was given for "changed" before it."""
    if target.last_good_at is None or target.version is None:
        return target.belief, None
    gap = now - target.last_good_at
    expected = beliefs.change_expected(target.belief, gap=gap)
    before = beliefs.fade(target.belief, prior=target.terms.prior, gap=gap)
    match change:
        case Change.SAME | Change.COSMETIC:
            return beliefs.same(before, gap=gap), expected
        case Change.CHANGED:
            return beliefs.changed(before, gap=gap) if age is None else beliefs.changed_at(before, age=age), expected
        case Change.FIRST | Change.MOVED | Change.GONE | Change.BACK | Change.UNKNOWN:
            return target.belief, None
        case _:
            assert_never(change)
