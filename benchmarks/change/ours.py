"""recrawl's own detector: as a crawl does, it decides about each page of a round, and again before recording."""

from collections.abc import Sequence

from msgspec.structs import replace

from benchmarks.change.visits import PageVisit
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
from crawler.core.visit.state import State
from crawler.core.visit.visit import Baseline, DomainKnowledge, Target, Visit


class Ours:
    """A detector that keeps what the store keeps of each page and domain between two visits."""

    def __init__(self) -> None:
        self._known: DomainKnowledge | None = None
        self._targets: dict[Url, Target] = {}
        self._snapshots: dict[Url, Baseline] = {}
        self._texts: dict[Url, set[bytes]] = {}
        self._bits: dict[Url, int | None] = {}

    def bits(self, page: Url) -> int | None:
        return self._bits.get(page)

    def judge(self, visits: Sequence[PageVisit]) -> Sequence[bool | None]:
        return [self._record(visit) for visit in [self._decide(page_visit) for page_visit in visits]]

    def _decide(self, page_visit: PageVisit) -> Visit:
        known = self._known or initial_knowledge(page_visit.page)
        target = self._targets.get(page_visit.page) or new_target(page_visit.page)
        parsed = _parse(page_visit.response, page_visit.page) if needs_parsing(target, page_visit.response) else None
        baseline = comparison = None
        if parsed is not None and needs_baseline(target, parsed):
            returned = parsed.version.text_digest in self._texts[page_visit.page]
            baseline = replace(self._snapshots[page_visit.page], has_returned=returned)
            comparison = compare_page(target, parsed, baseline, now=page_visit.at, knowledge=known)
            while should_fetch_again(target, comparison, baseline, now=page_visit.at, knowledge=known):
                again = _parse(page_visit.again(), page_visit.page)
                if not is_same_page(target, parsed, again, now=page_visit.at, knowledge=known):
                    break
                baseline = replace(baseline, second_fetches=(*baseline.second_fetches, again.blocks))
                comparison = compare_page(target, parsed, baseline, now=page_visit.at, knowledge=known)
        visit = decide_visit(
            target,
            page_visit.response,
            now=page_visit.at,
            knowledge=known,
            parsed=parsed,
            baseline=baseline,
            comparison=comparison,
        )
        self._known = replace(known, mask=visit.mask) if visit.mask is not None else known
        if visit.change is Change.ADDED and parsed is not None:
            self._snapshots[page_visit.page] = Baseline(parsed.blocks, page_visit.at)
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
            rate_estimate=visit.rate_estimate,
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


def _parse(response: Fetched, page: Url) -> Parsed:
    return parse_body(response.body, url=page, content_type=response.content_type)


def new_target(page: Url) -> Target:
    return Target(key=compute_page_key(page), url=page, depth=1, state=State.UNFETCHED, rate_estimate=PRIOR)


def initial_knowledge(page: Url) -> DomainKnowledge:
    return DomainKnowledge(scope=Scope(get_authority(page)), rules=ALLOW_ALL, agent="recrawl")
