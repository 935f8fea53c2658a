from datetime import timedelta

import pytest
from msgspec.structs import replace

from crawler.core.change.change import Change
from crawler.core.freshness.estimates import PRIOR, RateEstimate
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.snapshot import parse_body
from crawler.core.soft_errors import (
    NO_SOFT_ERRORS,
    SoftErrorMemory,
    TextSketch,
    record_good_visit,
    record_probe_response,
    record_probe_sent,
    select_own_text,
    sketch_blocks,
    sketch_target,
)
from crawler.core.visit.decide import decide_visit, reconsider_visit
from crawler.core.visit.soft_errors import add_soft_error_signs, update_soft_error_memory
from crawler.core.visit.state import State
from crawler.core.visit.visit import Baseline, DomainKnowledge, HeadOutcome, Target, Visit
from tests.core.visit.test_visit import DAY, KNOWN, NOW, ROOT, after, fetched, html, looked, seen

BODY = html("<p>price 19.99")
LOGIN = b"<html><body><form><p>Your name <input name=n> <p>and your secret <input type=password></form></body></html>"
SORRY = b"<html><body><h1>Sorry</h1><p>Nothing of this name is here, or it never was.</p></body></html>"
WORDS = b"apple river stone cloud paper glass metal wood".split()
PAGE = b"<html><body>%s<h1>News</h1>%s</body></html>"
AWAY = fetched(status=302, location=Url(ROOT + "elsewhere"))


def revisit(
    target: Target,
    body: bytes,
    *,
    before: bytes = BODY,
    soft_errors: SoftErrorMemory = NO_SOFT_ERRORS,
    known: DomainKnowledge = KNOWN,
    later: timedelta = DAY,
) -> Visit:
    """Visit a page that now has this body, compared with the body of the first visit."""
    then, now = (parse_body(each, url=target.url, content_type="text/html") for each in (before, body))
    baseline = add_soft_error_signs(Baseline(then.blocks, NOW), now.content, before, content_type="text/html")
    at = (target.last_visit_at or NOW) + later
    return decide_visit(
        target, fetched(body), now=at, knowledge=replace(known, soft_errors=soft_errors), baseline=baseline
    )


def count_visits_until_accepted(body: bytes, *, most: int = 20) -> int:
    """Return how many visits in a row it takes until this body is accepted as the page."""
    target = seen(BODY)
    for n in range(1, most):
        visit = revisit(target, body)
        if visit.is_good:
            assert visit.change is Change.CHANGED
            return n
        target = after(visit)
    return most


def remember_probe(answer: TextSketch, *, good_visits: int) -> SoftErrorMemory:
    soft_errors = record_probe_response(record_probe_sent(NO_SOFT_ERRORS, now=NOW), answer)
    for _ in range(good_visits):
        soft_errors = record_good_visit(soft_errors, None)
    return soft_errors


def sketch_not_found() -> TextSketch:
    parsed = parse_body(SORRY, url=Url(ROOT + "nowhere"), content_type="text/html")
    return sketch_blocks(select_own_text(parsed.blocks, KNOWN.mask))


def test_short_page_is_accepted_at_the_second_visit_and_login_after_two_days() -> None:
    assert count_visits_until_accepted(b"<html><body><p>It moved to the cellar.</p></body></html>") == 2
    assert count_visits_until_accepted(BODY[: len(BODY) // 2]) == 3
    assert count_visits_until_accepted(LOGIN) == 3
    assert count_visits_until_accepted(b"") == 20  # never


def test_second_visit_too_soon_does_not_confirm_a_soft_error() -> None:
    short = b"<html><body><p>It moved to the cellar.</p></body></html>"
    once = revisit(seen(BODY), short)

    assert revisit(after(once), short, later=timedelta(minutes=5)).change is Change.UNKNOWN
    assert revisit(after(once), short, later=timedelta(hours=1)).change is Change.CHANGED


def test_failure_before_a_soft_error_does_not_count_as_its_first_visit() -> None:
    broken = after(looked(seen(BODY), fetched(status=500)))

    assert revisit(broken, b"<html><body><p>It moved to the cellar.</p></body></html>").change is Change.UNKNOWN


def test_many_failures_before_a_soft_error_do_not_count() -> None:
    page = seen(BODY)
    for _ in range(11):
        page = after(looked(page, fetched(status=500)))
    visits = 0
    while not (visit := revisit(page, LOGIN)).is_good:
        visits, page = visits + 1, after(visit)

    assert visits == 2


def test_login_is_accepted_in_two_days_after_weeks_of_other_failures() -> None:
    page = seen(BODY)
    for n in range(11):
        page = after(looked(page, fetched(status=500), at=NOW + n * DAY))
    start = visit = revisit(page, LOGIN)
    while not visit.is_good:
        visit = revisit(after(visit), LOGIN, later=visit.due_at - visit.at)

    assert visit.at - start.at == 2 * DAY


def test_visits_with_one_soft_error_do_not_count_for_another() -> None:
    page = seen(BODY)
    for body in (BODY[: len(BODY) // 2], BODY[: len(BODY) // 2], LOGIN):
        page = after(revisit(page, body))

    assert revisit(page, LOGIN).change is Change.UNKNOWN


@pytest.mark.parametrize("gap", [timedelta(minutes=47), timedelta(hours=5), DAY, timedelta(days=30)], ids=str)
@pytest.mark.parametrize("fails_between", [False, True], ids=["steady", "with failures"])
def test_no_content_is_withheld_longer_than_two_days(gap: timedelta, fails_between: bool) -> None:
    """Visits come when they are due or, because of a user or a budget, at other times."""
    start = visit = revisit(seen(BODY), LOGIN)
    while not visit.is_good:
        deadline = start.at + 2 * DAY
        assert visit.due_at <= max(deadline, visit.at + DAY)
        if fails_between:
            visit = looked(after(visit), fetched(status=500), at=visit.at + gap / 2)
        visit = revisit(after(visit), LOGIN, later=gap)

    assert visit.change is Change.CHANGED
    assert visit.at - start.at < 2 * DAY + 2 * gap
    assert visit.snapshot is not None


def test_unproven_soft_404_is_accepted_as_content_after_two_days() -> None:
    soft_errors = remember_probe(sketch_not_found(), good_visits=0)
    page, visits = seen(BODY), []
    for _ in range(3):
        visits.append(revisit(page, SORRY, soft_errors=soft_errors))
        page = after(visits[-1])

    assert [visit.change for visit in visits] == [Change.UNKNOWN, Change.UNKNOWN, Change.CHANGED]


def parts(seed: int, *, rows: int = 40) -> bytes:
    """Return a parts list: codes and prices, with a heading that all lists share."""
    lines = (b"<tr><td>M%dx%d<td>%d.%02d<td>%d" % (seed + n, n, seed * n, n, seed + 7 * n) for n in range(rows))
    return PAGE % (b"", b"<table><tr><th>Part<th>Price<th>Stock" + b"".join(lines) + b"</table>")


@pytest.mark.parametrize("rows", [6, 20])
def test_number_pages_with_all_rows_replaced_are_changed_at_once(rows: int) -> None:
    soft_errors, changes = NO_SOFT_ERRORS, []
    for n in range(12):
        before = parts(100 * n, rows=rows)
        visit = revisit(seen(before), parts(100 * n + 50, rows=rows), before=before, soft_errors=soft_errors)
        soft_errors = update_soft_error_memory(soft_errors, visit)
        changes.append(visit.change)

    assert changes == 12 * [Change.CHANGED]


def codes(page: int, day: int, *, kept: int = 20, new: int = 180) -> bytes:
    words = [b"w%dpage%d" % (n, page) for n in range(kept)] + [b"w%dday%dp%d" % (n, day, page) for n in range(new)]
    return PAGE % (b"", b"<p>" + b" ".join(words))


def test_pages_of_codes_are_no_shared_text_and_a_probe_shows_the_change() -> None:
    soft_errors = record_probe_response(record_probe_sent(NO_SOFT_ERRORS, now=NOW + DAY), sketch_not_found())
    changes = []
    for n in range(6):
        visit = revisit(seen(codes(n, 1)), codes(n, 2), before=codes(n, 1), soft_errors=soft_errors)
        soft_errors = update_soft_error_memory(soft_errors, visit)
        changes.append(visit.change)

    assert changes == 6 * [Change.CHANGED]
    assert soft_errors.shared_texts != ()
    assert all(len(seen.previous_digests) == 1 for seen in soft_errors.shared_texts)


def test_existing_password_field_is_no_sign_of_a_login_page() -> None:
    box = b"<form>Members <input name=u> <input type=password name=p></form>"
    open_to_all, news, other = (
        PAGE % (form, b" ".join(n * word for word in WORDS for _ in range(4)))
        for form, n in ((b"", 1), (box, 1), (box, 2))
    )
    once = revisit(seen(news), other, before=news)
    twice = revisit(after(once), other, before=news)

    assert (once.reason, twice.change) == ("replaced", Change.CHANGED)
    assert revisit(seen(open_to_all), other, before=open_to_all).reason == "login"


def test_always_missing_end_tag_is_no_sign_of_truncation() -> None:
    paragraphs = [b"<p>What there is to say of %s, of %s alone and of nobody else." % (2 * (word,)) for word in WORDS]
    whole, fewer = (b"<!doctype html><title>T</title>" + b"".join(paragraphs[:n]) for n in (8, 5))

    assert revisit(seen(whole), fewer, before=whole).change is Change.CHANGED
    closed = whole + b"</body></html>"
    assert revisit(seen(closed), fewer, before=closed).reason == "truncated"


def test_soft_error_recognized_late_keeps_the_head_outcome() -> None:
    lively = replace(seen(BODY), rate_estimate=RateEstimate(50.0, 1.0))
    other = PAGE % (b"", b" ".join(word + bytes([97 + n]) for word in WORDS for n in range(20)))
    visit = replace(revisit(lively, other), head_outcome=HeadOutcome.DIFFERED)
    assert visit.change is Change.CHANGED
    assert visit.signals is not None
    soft_errors = NO_SOFT_ERRORS
    for n in range(4):
        soft_errors = update_soft_error_memory(
            soft_errors, replace(visit, signals=replace(visit.signals, snapshot_digest=bytes([n])))
        )

    again = reconsider_visit(visit, replace(KNOWN, soft_errors=soft_errors))

    assert (again.change, again.reason, again.head_outcome) == (Change.UNKNOWN, "shared_text", HeadOutcome.DIFFERED)


def test_soft_error_keeps_validators_estimate_and_version() -> None:
    before = seen(BODY)
    visit = revisit(before, LOGIN)

    assert (visit.reason, visit.snapshot, visit.validators, visit.links) == ("login", None, None, None)
    assert visit.rate_estimate == before.rate_estimate
    assert after(visit).version == before.version


@pytest.mark.parametrize("good_visits", [0, 2])
def test_soft_404_is_not_confirmed_while_no_other_page_is_fine(good_visits: int) -> None:
    once = revisit(seen(BODY), SORRY, soft_errors=remember_probe(sketch_not_found(), good_visits=good_visits))
    twice = revisit(after(once), SORRY, soft_errors=remember_probe(sketch_not_found(), good_visits=good_visits))

    assert (once.reason, twice.reason) == ("soft_404", "soft_404")
    assert twice.state is State.FETCHED


def test_soft_404_is_confirmed_like_a_404() -> None:
    soft_errors = remember_probe(sketch_not_found(), good_visits=3)
    once = revisit(seen(BODY), SORRY, soft_errors=soft_errors)
    twice = revisit(after(once), SORRY, soft_errors=soft_errors)
    still = revisit(after(twice), SORRY, soft_errors=soft_errors)

    assert (once.change, twice.change, still.change) == (Change.UNKNOWN, Change.GONE, Change.UNCHANGED)
    assert revisit(after(still), BODY.replace(b"19.99", b"19.98"), soft_errors=soft_errors).change is Change.RESTORED


def test_page_that_redirects_like_the_not_found_probe_is_a_soft_404() -> None:
    soft_errors = remember_probe(sketch_target(compute_page_key(Url(ROOT + "elsewhere"))), good_visits=3)
    visit = decide_visit(seen(BODY), AWAY, now=NOW, knowledge=replace(KNOWN, soft_errors=soft_errors))

    assert (visit.change, visit.reason) == (Change.UNKNOWN, "soft_404")
    assert looked(seen(BODY), AWAY).reason == "http_302"


def test_pages_that_all_redirect_to_one_target_are_a_shared_text() -> None:
    soft_errors = NO_SOFT_ERRORS
    reasons = []
    for n in range(4):
        page = seen(html(f"<p>this is page {n}"))
        visit = decide_visit(page, AWAY, now=NOW, knowledge=replace(KNOWN, soft_errors=soft_errors))
        soft_errors = update_soft_error_memory(soft_errors, visit)
        reasons.append(visit.reason)

    assert reasons == ["http_302", "http_302", "shared_text", "shared_text"]


def test_new_pages_are_compared_with_not_found_text_after_the_boilerplate_is_learned() -> None:
    known = replace(
        KNOWN, mask=replace(KNOWN.mask, visits=10_000), soft_errors=remember_probe(sketch_not_found(), good_visits=0)
    )
    urls = [Url(f"{ROOT}{n}") for n in range(40)]
    pages = [Target(compute_page_key(url), url, 1, State.UNFETCHED, PRIOR) for url in urls]

    assert not any(decide_visit(page, fetched(SORRY), now=NOW, knowledge=known).is_good for page in pages)
