from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.change.change import Change, Evidence
from crawler.core.freshness.estimates import PRIOR, RateEstimate
from crawler.core.freshness.visit_terms import RequestReason, VisitTerms
from crawler.core.http.response import FailureReason, Fetched, NotModified, Response, Unreached, Validators
from crawler.core.http.robots import ALLOW_ALL, parse_robots
from crawler.core.http.urls import Authority, Scope, Url, compute_page_key
from crawler.core.visit.decide import decide_visit
from crawler.core.visit.state import State
from crawler.core.visit.visit import DomainKnowledge, Target, Visit, find_exclusion

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ROOT = "http://site.test/"
KNOWN = DomainKnowledge(
    scope=Scope(authority=Authority("site.test"), scheme="http", max_depth=5),
    rules=ALLOW_ALL,
    agent="recrawl",
)
TERMS = VisitTerms()
PARAGRAPHS = "".join(
    f"<p>Paragraph {n} tells at some length what there is to know about the matter at hand, and a little more.</p>"
    for n in range(12)
)


def html(inside: str, *, title: str = "A page", footer: str = "") -> bytes:
    nav = "<nav><a href='/'>home</a></nav>"
    return (
        f"<html><head><title>{title}</title></head><body>{nav}<main><article><h1>{title}</h1>{PARAGRAPHS}{inside}"
        f"</article></main><footer>{footer}</footer></body></html>"
    ).encode()


def fetched(body: bytes = b"", status: int = 200, **more: object) -> Fetched:
    given: dict[str, object] = {
        "status": status,
        "body": body,
        "received_bytes": len(body),
        "elapsed": timedelta(milliseconds=20),
        "content_type": "text/html; charset=utf-8",
        "validators": Validators('"1"', "Sun, 01 Feb 2026 00:00:00 GMT") if status == 200 else Validators(),
    }
    return Fetched(**(given | more))  # type: ignore[arg-type]


def target(**more: object) -> Target:
    url = Url(ROOT + "page")
    given: dict[str, object] = {
        "key": compute_page_key(url),
        "url": url,
        "depth": 1,
        "state": State.UNFETCHED,
        "rate_estimate": PRIOR,
    }
    return Target(**(given | more))  # type: ignore[arg-type]


def after(visit: Visit) -> Target:
    """Return the target as it is dispatched next time."""
    shot = visit.snapshot
    return replace(
        visit.target,
        state=visit.state,
        rate_estimate=visit.rate_estimate,
        validators=visit.validators if visit.validators is not None else visit.target.validators,
        received_bytes=visit.body_bytes if visit.body_bytes is not None else visit.target.received_bytes,
        version=shot.version if shot else visit.target.version,
        outlinks=tuple(link.key for link in visit.links) if visit.links is not None else visit.target.outlinks,
        status=visit.status,
        reason=visit.reason,
        failures=visit.failures,
        soft_errors=visit.soft_errors,
        withheld_since=None if visit.is_good else visit.withheld_since,
        last_visit_at=visit.at,
        last_good_at=visit.at if visit.is_good else visit.target.last_good_at,
        missing_since=None if visit.is_good else visit.missing_since,
        due_at=visit.due_at,
    )


def seen(body: bytes = html("<p>price 19.99"), *, ago: timedelta = DAY) -> Target:
    """Return a page that was fetched once."""
    return after(decide_visit(target(), fetched(body), now=NOW - ago, knowledge=KNOWN))


def looked(before: Target, response: Response, *, at: datetime = NOW) -> Visit:
    return decide_visit(before, response, now=at, knowledge=KNOWN)


def test_first_visit_makes_a_snapshot() -> None:
    visit = looked(target(), fetched(html("<p>hello")))

    assert visit.change is Change.ADDED
    assert visit.snapshot is not None
    assert visit.snapshot.version.number == 1
    assert "hello" in visit.snapshot.text
    assert visit.state is State.FETCHED
    assert visit.rate_estimate == PRIOR


def test_response_304_is_unchanged_without_parsing() -> None:
    before = seen()

    visit = looked(before, NotModified(elapsed=timedelta(milliseconds=3)))

    assert (visit.change, visit.verdict.evidence) == (Change.UNCHANGED, Evidence.NOT_MODIFIED)
    assert visit.saved_bytes == before.received_bytes > 0
    assert (visit.links, visit.snapshot, visit.validators) == (None, None, None)
    assert visit.recipients == before.outlinks
    assert visit.rate_estimate == RateEstimate(PRIOR.a, PRIOR.b + 1)


def test_unrequested_304_is_a_failure() -> None:
    assert looked(target(), NotModified(elapsed=timedelta(0))).change is Change.UNKNOWN


def test_equal_bytes_are_unchanged_without_parsing() -> None:
    visit = looked(seen(), fetched(html("<p>price 19.99")))

    assert (visit.change, visit.verdict.evidence, visit.links) == (Change.UNCHANGED, Evidence.BYTES, None)


@pytest.mark.parametrize(
    "body",
    [
        html("<p>price 99.19"),
        html("<p>price 19.98"),
        html("<p>price 19.99 <b>new</b>"),
        html("<p>price 19.99", title="Another page"),
    ],
)
def test_changed_digit_of_a_price_is_a_change(body: bytes) -> None:
    visit = looked(seen(), fetched(body))

    assert visit.change is Change.CHANGED
    assert visit.snapshot is not None
    assert visit.snapshot.version.number == 2
    assert visit.rate_estimate.rate_per_day > PRIOR.rate_per_day


@pytest.mark.parametrize(
    "body",
    [
        html("<p>price 19.99<input type=hidden name=csrf value=8d7f>"),
        html("<p  class=x >price   19.99 "),
        html("<!-- built at 12:04 --><p>price 19.99"),
        html("<script>var nonce=77</script><p>price 19.99"),
    ],
)
def test_invisible_difference_is_no_change(body: bytes) -> None:
    assert looked(seen(), fetched(body)).change is Change.UNCHANGED


def test_clock_in_the_footer_is_cosmetic_and_counts_as_unchanged() -> None:
    before = seen(html("<p>x", footer="It is 12:00"))

    visit = looked(before, fetched(html("<p>x", footer="It is 12:01")))

    assert visit.change is Change.COSMETIC
    assert visit.snapshot is None
    assert visit.rate_estimate == RateEstimate(PRIOR.a, PRIOR.b + 1)


def test_many_small_edits_add_up_to_a_change() -> None:
    """Versions are compared with the last Snapshot, not with the last visit."""
    before = seen(html("<p>x", footer="1"))
    for n in range(2, 6):
        before = after(looked(before, fetched(html("<p>x", footer=str(n)))))

    assert before.version is not None
    assert before.version.number == 1
    assert looked(before, fetched(html("<p>y", footer="1"))).change is Change.CHANGED


FAILURES: list[Response] = [
    fetched(status=500),
    fetched(status=403),
    fetched(status=404),
    fetched(status=429, retry_after="5"),
    fetched(status=503),
    fetched(b"", status=200),
    fetched(status=302, location=Url(ROOT + "login")),
    *(Unreached(reason, timedelta(seconds=1)) for reason in FailureReason if reason is not FailureReason.ROBOTS),
]


@pytest.mark.parametrize("response", FAILURES, ids=lambda a: getattr(a, "status", None) or a.reason)
def test_failure_keeps_what_was_learned(response: Response) -> None:
    before = seen()

    kept = after(looked(before, response))

    assert (kept.version, kept.validators, kept.rate_estimate) == (
        before.version,
        before.validators,
        before.rate_estimate,
    )
    assert (kept.received_bytes, kept.last_good_at) == (before.received_bytes, before.last_good_at)


@given(st.lists(st.sampled_from([None, *FAILURES]), min_size=1, max_size=12))
def test_errors_in_between_leave_the_same_knowledge(responses: list[Response | None]) -> None:
    """None is a successful visit. Successful visits alone, at the same times, must teach the same."""
    with_errors = without = seen()
    for n, response in enumerate(responses, start=1):
        at = NOW + n * DAY
        if response is None:
            body = fetched(html(f"<p>version {n // 2}"))
            with_errors, without = (after(looked(page, body, at=at)) for page in (with_errors, without))
        else:
            with_errors = after(looked(with_errors, response, at=at))
            if with_errors.state is State.GONE:
                return  # the second 404 is no error

    assert (with_errors.rate_estimate, with_errors.version) == (without.rate_estimate, without.version)
    assert with_errors.validators == without.validators


def test_response_404_needs_confirmation_and_410_does_not() -> None:
    before = seen()

    once = looked(before, fetched(status=404))
    too_soon = looked(after(once), fetched(status=404), at=NOW + timedelta(minutes=5))
    twice = looked(after(once), fetched(status=404), at=once.due_at)

    assert (once.change, once.state) == (Change.UNKNOWN, State.FETCHED)
    assert too_soon.state is State.FETCHED
    assert (twice.change, twice.state) == (Change.GONE, State.GONE)
    assert looked(before, fetched(status=410)).change is Change.GONE


@pytest.mark.parametrize("minutes", [10, 30, 60, 24 * 60])
def test_response_404_is_confirmed_within_the_hour_with_any_rule(minutes: int) -> None:
    page = replace(seen(), terms=VisitTerms(max_interval=timedelta(minutes=minutes)))

    once = looked(page, fetched(status=404))
    twice = looked(after(once), fetched(status=404), at=once.due_at)

    assert timedelta(minutes=10) <= once.due_at - NOW <= timedelta(hours=1)
    assert once.next_request is RequestReason.TO_CONFIRM
    assert (twice.change, twice.state, twice.next_request) == (Change.GONE, State.GONE, RequestReason.NONE)


@pytest.mark.parametrize("wanted", [RequestReason.BY_USER, RequestReason.BY_URL])
def test_frequent_requests_confirm_a_404_ten_minutes_after_the_first(wanted: RequestReason) -> None:
    visit = looked(replace(seen(), requested=wanted), fetched(status=404))
    minutes = 0
    while visit.state is State.FETCHED:
        assert visit.due_at == NOW + timedelta(minutes=10)
        minutes += 3
        visit = looked(
            replace(after(visit), requested=wanted), fetched(status=404), at=NOW + timedelta(minutes=minutes)
        )

    assert minutes == 12


def test_successful_visit_between_two_404s_restarts_the_confirmation() -> None:
    once = looked(seen(), fetched(status=404))
    good = looked(after(once), fetched(html("<p>price 19.99")), at=NOW + timedelta(minutes=20))

    assert looked(after(good), fetched(status=404), at=NOW + timedelta(minutes=40)).state is State.FETCHED


@pytest.mark.parametrize(("days", "state"), [(0.1, State.GONE), (3, State.FETCHED)], ids=["hours", "three days"])
def test_two_404s_around_an_outage_confirm_nothing(days: float, state: State) -> None:
    once = looked(seen(), fetched(status=404))
    broken = looked(after(once), fetched(status=503), at=once.due_at)

    assert looked(after(broken), fetched(status=404), at=NOW + days * DAY).state is state


def test_two_404s_of_weekly_visits_confirm_each_other() -> None:
    once = looked(seen(), fetched(status=404))

    assert looked(after(once), fetched(status=404), at=NOW + 7 * DAY).state is State.GONE


def test_response_404_after_a_500_is_no_confirmation() -> None:
    broken = after(looked(seen(), fetched(status=500)))

    assert looked(broken, fetched(status=404), at=NOW + DAY).state is State.FETCHED


def test_gone_page_is_revisited_and_may_be_restored() -> None:
    gone = looked(seen(), fetched(status=410))
    still = looked(after(gone), fetched(status=404), at=gone.due_at)
    same = looked(after(still), fetched(html("<p>price 19.99")), at=still.due_at)
    other = looked(after(still), fetched(html("<p>price 20.00")), at=still.due_at)

    assert gone.due_at > NOW
    assert (still.change, still.state) == (Change.UNCHANGED, State.GONE)
    assert (same.change, same.snapshot, same.state) == (Change.RESTORED, None, State.FETCHED)
    assert other.change is Change.RESTORED
    assert other.snapshot is not None
    assert other.snapshot.version.number == 2


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (html("<p>Get <a href=/v1.zip>the file</a>"), html("<p>Get <a href=/v2.zip>the file</a>")),
        (html("<p>price 19.99", footer="one year"), html("<p>price 19.99", footer="another")),
    ],
    ids=["link", "beside"],
)
def test_any_difference_of_a_restored_page_is_stored(then: bytes, now: bytes) -> None:
    gone = after(looked(seen(then), fetched(status=410)))
    back = looked(gone, fetched(now), at=NOW + DAY)

    assert back.change is Change.RESTORED
    assert back.snapshot is not None
    assert back.snapshot.body == now


def test_restored_image_with_another_body_is_stored() -> None:
    one, two = (fetched(b"\x89PNG " + each, content_type="image/png") for each in (b"one", b"two"))
    gone = after(looked(after(looked(target(), one)), fetched(status=410)))
    back = looked(gone, two, at=NOW + DAY)

    assert (back.change, back.snapshot is None) == (Change.RESTORED, False)


@pytest.mark.parametrize("status", [301, 308])
def test_permanent_redirect_moves_the_page(status: int) -> None:
    visit = looked(seen(), fetched(status=status, location=Url(ROOT + "new")))

    assert (visit.change, visit.state) == (Change.MOVED, State.MOVED)
    assert visit.moved_to is not None
    assert visit.moved_to.url == ROOT + "new"


@pytest.mark.parametrize("status", [302, 303, 307])
def test_temporary_redirect_does_not_move_the_page(status: int) -> None:
    visit = looked(seen(), fetched(status=status, location=Url(ROOT + "new")))

    assert visit.state is State.FETCHED
    assert visit.links is not None
    assert [link.url for link in visit.links] == [ROOT + "new"]


def test_redirect_to_itself_is_a_failure() -> None:
    visit = looked(seen(), fetched(status=301, location=Url(ROOT + "page")))

    assert (visit.change, visit.reason) == (Change.UNKNOWN, "redirects_to_itself")


def test_page_that_moves_to_another_domain_passes_no_cash_on() -> None:
    visit = looked(seen(), fetched(status=301, location=Url("http://else.test/")))

    assert (visit.state, visit.moved_to, visit.reason) == (State.MOVED, None, "moved_away")


def test_failing_page_keeps_its_cash_twice_and_then_passes_it_on() -> None:
    page, gives = seen(), []
    for n in range(4):
        visit = looked(page, fetched(status=500), at=NOW + n * DAY)
        gives.append(visit.recipients)
        page = after(visit)

    assert gives == [None, None, (), ()]


def test_overload_concerns_the_domain() -> None:
    visit = looked(seen(), fetched(status=503, retry_after="120"))

    assert visit.overloaded
    assert visit.retry_after == timedelta(minutes=2)
    assert visit.state is State.FETCHED
    assert visit.recipients is None


def test_waits_of_a_page_that_is_always_busy_grow() -> None:
    page, waits = seen(), []
    for n in range(6):
        at = NOW + n * DAY
        visit = looked(page, fetched(status=503), at=at)
        waits.append(visit.due_at - at)
        page = after(visit)

    assert waits == [timedelta(minutes=2**n) for n in range(6)]


def test_failures_are_retried_with_growing_bounded_waits() -> None:
    page, waits = seen(), []
    for n in range(12):
        at = NOW + 30 * n * DAY
        visit = looked(page, Unreached(FailureReason.DEADLINE, timedelta(seconds=20)), at=at)
        waits.append(visit.due_at - at)
        page = after(visit)

    assert waits == sorted(waits)
    assert timedelta(0) < waits[0]
    assert waits[-1] <= timedelta(days=7)


def test_links_are_distinct_in_domain_and_not_to_the_page_itself() -> None:
    body = html("<a href='/a'>1</a><a href='/a#x'>2</a><a href='page'>3</a><a href='http://else.test/'>4</a>")

    visit = looked(target(), fetched(body))

    assert visit.links is not None
    assert [link.url for link in visit.links] == [ROOT, ROOT + "a"]


def test_excluded_links_have_a_reason() -> None:
    known = replace(KNOWN, rules=parse_robots(b"User-agent: *\nDisallow: /secret"))
    body = fetched(html("<a href='/secret/1'>1</a><a href='/open'>2</a>"))

    visit = decide_visit(target(), body, now=NOW, knowledge=known)
    deep = decide_visit(target(depth=5), body, now=NOW, knowledge=known)

    assert visit.links is not None
    assert {link.url.removeprefix(ROOT): link.exclusion for link in visit.links} == {
        "": "", "secret/1": "robots", "open": ""
    }  # fmt: skip
    assert deep.links is not None
    assert {link.exclusion for link in deep.links} == {"too_deep"}
    assert find_exclusion(Url(ROOT + "secret/1"), depth=1, knowledge=known) == "robots"


def test_two_virtual_years_of_a_static_page_stay_conditional() -> None:
    page, visits = seen(), 0
    at = NOW
    while at < NOW + 730 * DAY:
        assert page.validators
        visit = looked(page, NotModified(elapsed=timedelta(0)), at=at)
        page, visits, at = after(visit), visits + 1, visit.due_at

    assert page.version is not None
    assert page.version.number == 1
    assert visits < 150


@given(
    gap=st.timedeltas(timedelta(0), 4000 * DAY),
    rate_estimate=st.builds(RateEstimate, a=st.floats(0.01, 1e4), b=st.floats(0.01, 1e4)),
    importance=st.floats(0, 1e6),
    response=st.sampled_from([NotModified(elapsed=timedelta(0)), fetched(html("<p>new")), *FAILURES]),
)
def test_next_visit_is_never_in_the_past_and_within_the_longest_interval(
    gap: timedelta, rate_estimate: RateEstimate, importance: float, response: Response
) -> None:
    page = replace(seen(ago=gap), rate_estimate=rate_estimate, importance=importance)

    visit = looked(page, response)

    assert visit.due_at >= NOW
    assert visit.due_at <= NOW + TERMS.max_interval
    assert visit.is_good is False or visit.due_at >= NOW + TERMS.min_interval


def test_decide_visit_is_deterministic() -> None:
    page, response = seen(), fetched(html("<p>other"))

    assert looked(page, response) == looked(page, response)


def test_nofollow_page_has_no_links() -> None:
    body = fetched(b"<meta name=robots content=nofollow><a href=/a>a</a>")

    assert looked(target(), body).links == ()


def test_links_to_other_domains_are_only_counted() -> None:
    body = fetched(html("<a href=/a>a</a><a href=//b.test/1>b</a><a href=//b.test/2>b</a><a href=//c.test/>c</a>"))

    visit = looked(target(), body)

    assert visit.links is not None
    assert {link.url for link in visit.links} == {ROOT, f"{ROOT}a"}
    assert visit.external_links == (("b.test", 2), ("c.test", 1))


def test_page_with_a_canonical_link_gives_it_all_its_cash() -> None:
    copy = looked(target(), fetched(html("<link rel=canonical href=/original><a href=/a>a</a>")))
    itself = looked(target(), fetched(html(f"<link rel=canonical href={ROOT}page><a href=/a>a</a>")))

    assert copy.recipients == (compute_page_key(Url(f"{ROOT}original")),)
    assert copy.links is not None
    assert {link.url for link in copy.links} == {f"{ROOT}original", ROOT, f"{ROOT}a"}
    assert itself.recipients == (compute_page_key(Url(ROOT)), compute_page_key(Url(f"{ROOT}a")))


@pytest.mark.parametrize(
    ("seconds", "honest"),
    [
        (-1, False),
        (0, None),
        (1, True),
        (30, True),
        (3600, True),
        (DAY.total_seconds() - 61, True),
        (DAY.total_seconds() - 1, None),
        (DAY.total_seconds() + 59, None),
        (DAY.total_seconds() + 61, False),
    ],
    ids=str,
)
def test_last_modified_seconds_before_a_visit_is_honest(seconds: float, honest: bool | None) -> None:
    """seconds: before the Date of the response, which is an hour off the local clock."""
    date = NOW + timedelta(hours=1)
    validators = Validators('"2"', format_datetime(date - timedelta(seconds=seconds), usegmt=True))

    visit = looked(
        seen(), fetched(html("<p>price 20.99"), validators=validators, date=format_datetime(date, usegmt=True))
    )

    assert visit.change is Change.CHANGED
    assert visit.modified_honest is honest


def test_without_a_date_header_clocks_may_differ_by_a_minute() -> None:
    def honest(seconds: int) -> bool | None:
        validators = Validators('"2"', format_datetime(NOW - timedelta(seconds=seconds), usegmt=True))
        return looked(seen(), fetched(html("<p>price 20.99"), validators=validators)).modified_honest

    assert [honest(seconds) for seconds in (-61, -59, 0, 59, 61)] == [False, None, None, None, True]


def test_last_modified_of_this_minute_does_not_affect_the_rate() -> None:
    """A server that sets the date at each visit would raise the rate without end."""
    trusting = replace(seen(), trusts_modified=True)
    date = format_datetime(NOW, usegmt=True)

    def believed(seconds: int) -> RateEstimate:
        validators = Validators('"2"', format_datetime(NOW - timedelta(seconds=seconds), usegmt=True))
        return looked(trusting, fetched(html("<p>price 20.99"), validators=validators, date=date)).rate_estimate

    assert believed(30) == looked(seen(), fetched(html("<p>price 20.99"))).rate_estimate
    assert believed(3600) != believed(30)
