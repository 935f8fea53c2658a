"""The judgement of recrawl as in a lease: page after page by decide, and once more before the record."""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.change.visits import Look
from crawler.core.change.change import Change
from crawler.core.freshness.estimates import PRIOR
from crawler.core.http.response import Fetched
from crawler.core.http.robots import ALLOW_ALL
from crawler.core.http.urls import Scope, Url, compute_page_key, get_authority
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.visit.decide import (
    compare_page,
    decide_visit,
    needs_baseline,
    needs_parsing,
    reconsider_visit,
    should_fetch_again,
)
from crawler.core.visit.soft_errors import is_same_page
from crawler.core.visit.visit import Baseline, DomainKnowledge, State, Target, Visit


class Ours:
    """Keeps of each page what the store keeps of it between two looks, and of the site what it keeps of the domain."""

    def __init__(self) -> None:
        self._known: DomainKnowledge | None = None
        self._targets: dict[Url, Target] = {}
        self._snapshots: dict[Url, Baseline] = {}
        self._texts: dict[Url, set[bytes]] = {}
        self._bits: dict[Url, int | None] = {}

    def bits(self, page: Url) -> int | None:
        return self._bits.get(page)

    def judge(self, looks: Sequence[Look]) -> Sequence[bool | None]:
        return [self._record(visit) for visit in [self._look(look) for look in looks]]

    def _look(self, look: Look) -> Visit:
        known = self._known or known_of(look.page)
        target = self._targets.get(look.page) or new_target(look.page)
        parsed = _read(look.answer, look.page) if needs_parsing(target, look.answer) else None
        baseline = comparison = None
        if parsed is not None and needs_baseline(target, parsed):
            returned = parsed.version.text_digest in self._texts[look.page]
            baseline = replace(self._snapshots[look.page], has_returned=returned)
            comparison = compare_page(target, parsed, baseline, now=look.at, knowledge=known)
            while should_fetch_again(target, comparison, baseline, now=look.at, knowledge=known):
                again = _read(look.again(), look.page)
                if not is_same_page(target, parsed, again, now=look.at, knowledge=known):
                    break
                baseline = replace(baseline, second_fetches=(*baseline.second_fetches, again.blocks))
                comparison = compare_page(target, parsed, baseline, now=look.at, knowledge=known)
        visit = decide_visit(
            target,
            look.answer,
            now=look.at,
            knowledge=known,
            parsed=parsed,
            baseline=baseline,
            comparison=comparison,
        )
        self._known = replace(known, mask=visit.mask) if visit.mask is not None else known
        if visit.change is Change.ADDED and parsed is not None:
            self._snapshots[look.page] = Baseline(parsed.blocks, look.at)
        return visit

    def _record(self, first: Visit) -> bool | None:
        assert self._known is not None
        visit = reconsider_visit(first, self._known)
        target, page = visit.target, visit.target.url
        self._bits[page] = visit.verdict.distance_bits
        version = visit.snapshot.version if visit.snapshot else target.version
        self._targets[page] = replace(
            target,
            state=visit.state,
            belief=visit.rate_estimate,
            version=version,
            received_bytes=visit.received_bytes,
            status=visit.status,
            last_visit_at=visit.at,
            last_good_at=visit.at,
        )
        if visit.snapshot is not None:
            self._texts.setdefault(page, set()).add(visit.snapshot.version.text_digest)
        if visit.verdict_inputs is not None:
            self._snapshots[page] = Baseline(visit.verdict_inputs.parsed.blocks, visit.at)
        return None if visit.change is Change.ADDED else visit.change is Change.CHANGED


def _read(answer: Fetched, page: Url) -> Parsed:
    return parse_body(answer.body, url=page, content_type=answer.content_type, robots_tag=answer.robots_tag)


def new_target(page: Url) -> Target:
    return Target(key=compute_page_key(page), url=page, depth=1, state=State.UNFETCHED, belief=PRIOR)


def known_of(page: Url) -> DomainKnowledge:
    return DomainKnowledge(scope=Scope(get_authority(page)), rules=ALLOW_ALL, agent="recrawl")
