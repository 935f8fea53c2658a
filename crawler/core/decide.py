"""One finished look: from what we knew and what the web said, to what we know now. Pure, so that it can be replayed."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import assert_never

from crawler.core.answer import Answer, Fetched, NotModified, Unreached
from crawler.core.change import Change, Rung, Snapshot, Understood, Verdict, Version, judge, understand
from crawler.core.fingerprint import digest
from crawler.core.learning import CLOCK_SLACK, is_honest, looked, modified_of
from crawler.core.lifecycle import failed, missing, redirected, unreached
from crawler.core.outlinks import canonical_of, links_of
from crawler.core.page import Reading
from crawler.core.visit import PERMANENT, TEMPORARY, Known, State, Target, Visit, fetched


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
            return unreached(target, answer, now=now)
        case Fetched(status=status) if 200 <= status < 300:
            return _good(target, answer, now=now, known=known, understood=understood)
        case Fetched(status=status, location=location) if status in PERMANENT | TEMPORARY and location is not None:
            return redirected(target, answer, now=now, known=known)
        case Fetched(status=404 | 410):
            return missing(target, answer, now=now)
        case Fetched():
            return failed(target, answer, now=now, reason=f"http_{answer.status}")
        case _:
            assert_never(answer)


def _not_modified(target: Target, answer: NotModified, *, now: datetime) -> Visit:
    if target.version is None:
        return failed(target, answer, now=now, reason="unasked_304")
    verdict = Verdict(Change.SAME, Rung.NOT_MODIFIED)
    return replace(
        looked(target, verdict, now=now),
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


def _good(target: Target, answer: Fetched, *, now: datetime, known: Known, understood: Understood | None) -> Visit:
    if not answer.body and target.version is not None and target.received_bytes > 0:
        return failed(target, answer, now=now, reason="empty_body")  # a page with content does not end like this
    before = target.version
    visit = partial(fetched, answer=answer, validators=answer.validators, body_bytes=answer.received_bytes)
    if not needs_reading(target, answer):
        verdict = Verdict(Change.SAME, Rung.BYTES, 0)
        touched = modified_of(answer, now=now)
        lies = touched is not None and target.last_good_at is not None and touched > target.last_good_at + CLOCK_SLACK
        same = visit(looked(target, verdict, now=now))
        return replace(same, gives=target.outlinks, modified_honest=False if lies else None)
    reading, after = _understood(target, answer, understood)
    links, elsewhere = links_of(reading, target=target, known=known)
    alias = canonical_of(reading, links, known=known)
    verdict = judge(before, after)
    modified = modified_of(answer, now=now)
    if target.state in {State.GONE, State.MOVED} and before is not None:
        verdict = replace(verdict, change=Change.BACK)
    honest = is_honest(target, modified, verdict.change, now=now)
    age = now - modified if modified is not None and honest and known.trusts_modified else None
    return replace(
        visit(looked(target, verdict, now=now, age=age)),
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
