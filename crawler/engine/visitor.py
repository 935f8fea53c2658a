"""Visit a page: fetch, parse and compare it, and decide. Only the entries of sitemaps and feeds are stored here."""

import asyncio
from collections import defaultdict, deque
from datetime import datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.change.change import Change
from crawler.core.change.edits import BoilerplateEdit
from crawler.core.change.mask_learning import pop_boilerplate_edit
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.http.response import NO_VALIDATORS, Fetched, NotModified, Response, SoftError, Unreached, Validators
from crawler.core.http.urls import PageKey, Url
from crawler.core.page.fingerprint import Fingerprint, count_distance_bits
from crawler.core.page.lists.list_text import is_list_body
from crawler.core.page.lists.url_list import ListKind
from crawler.core.page.snapshot import Parsed
from crawler.core.soft_errors import is_probe_due, record_probe_response, record_probe_sent
from crawler.core.validator_trust import (
    build_spared_visit,
    choose_validators_to_verify,
    is_unchanged_by_head,
    judge_head,
)
from crawler.core.visit import decide, lifecycle
from crawler.core.visit.lists import add_list_result, build_list_visit, build_no_list_visit
from crawler.core.visit.soft_errors import may_be_soft_404, update_soft_error_memory
from crawler.core.visit.state import OVERLOAD_STATUSES
from crawler.core.visit.visit import Baseline, DomainKnowledge, Target, Visit, find_exclusion
from crawler.engine.extra_fetches import load_baseline, probe_not_found, refetch_page
from crawler.engine.lists import LIST_LIMITS, admit_list
from crawler.engine.rendering.page_reader import PageReader
from crawler.engine.requests.login import Login, convert_to_unauthorized
from crawler.engine.requests.requester import Requester, WebRequest
from crawler.engine.store_port import LeasedStore

MAX_RECENT_TEXTS = 64  # fingerprints of added pages that are remembered
MIN_ALIKE = 3  # an added page that is similar to this many of the remembered ones may be a soft 404
# Fingerprints (64 bits) are similar if at most this many bits differ. So many differ between short texts that are equal
# except for an address and a number.
TOLERANCE_BITS = 16


class ExtraCost(Struct, frozen=True):
    """The cost of a visit beside the response that decides it: extra requests, and bytes received by a browser."""

    requests: int = 0
    received_bytes: int = 0

    def __add__(self, other: "ExtraCost") -> "ExtraCost":
        return ExtraCost(self.requests + other.requests, self.received_bytes + other.received_bytes)


class Visitor:
    """A visitor of one domain's pages, any number of them concurrently.

    knowledge: what is known of the domain; each visit may add to it.
    login: used when a response requires a login; None if the domain has none.
    """

    def __init__(
        self,
        store: LeasedStore,
        requester: Requester,
        reader: PageReader,
        knowledge: DomainKnowledge,
        login: Login | None,
    ) -> None:
        self.store, self.clock, self.requester, self.login = store, store.clock, requester, login
        self.reader, self.parser, self.knowledge = reader, reader.parser, knowledge
        self._recent_texts: deque[Fingerprint] = deque(maxlen=MAX_RECENT_TEXTS)  # of added pages
        self._probe_lock = asyncio.Lock()
        self._list_lock = asyncio.Lock()  # held while a list is fetched, parsed and admitted, to save memory
        self._extra_costs: defaultdict[PageKey, ExtraCost] = defaultdict(ExtraCost)  # of visits in progress

    def pop_boilerplate_edit(self, *, at: datetime) -> BoilerplateEdit | None:
        """Return the change of the site's boilerplate that is due to be reported, if any, and mark it as reported."""
        edit, mask = pop_boilerplate_edit(self.knowledge.mask, at=at)
        self.knowledge = replace(self.knowledge, mask=mask)
        return edit

    def pop_pages_to_render(self, *, is_exhausted: bool) -> tuple[PageKey, ...]:
        """Return stored pages that a browser should render now, and mark them as returned.

        is_exhausted: whether the domain has no other page to fetch.
        """
        pages, renders = self.reader.select_pages_to_render(self.knowledge.renders, is_exhausted=is_exhausted)
        self.knowledge = replace(self.knowledge, renders=renders)
        return pages

    async def visit_page(self, target: Target) -> Visit | None:
        """Visit a page; return None if its request could not be sent, for example because the lease ends."""
        try:
            visit = await self._fetch_and_decide(target)
        finally:
            extra_cost = self._extra_costs.pop(target.key, ExtraCost())
        if visit is None:
            return None
        received_bytes = visit.received_bytes + extra_cost.received_bytes
        return replace(visit, received_bytes=received_bytes, extra_requests=extra_cost.requests)

    async def fetch_extra(self, target: Target, url: Url, *, validators: Validators = NO_VALIDATORS) -> Response | None:
        """Send an extra request for a visit; return None if the budget is spent or the lease is ending."""
        response = await self.requester.fetch_extra(url, validators=validators)
        if response is not None:
            self._extra_costs[target.key] += ExtraCost(requests=1, received_bytes=response.received_bytes)
        return response

    async def _fetch_and_decide(self, target: Target) -> Visit | None:
        if target.list_stats is not None:
            return await self._visit_list(target)
        exclusion = find_exclusion(target.url, depth=target.depth, knowledge=self.knowledge)
        if exclusion:
            return lifecycle.build_excluded_visit(target, reason=exclusion, now=self.clock.now())
        if target.requested is RequestReason.TO_RENDER:  # a 304 has no body to render
            target = replace(target, validators=NO_VALIDATORS, sends_head=False)
        if target.sends_head and await self.requester.reserve_request():
            return await self.visit_by_head(target)
        logins = self.login.login_count if self.login else 0
        response = await self.requester.fetch_target(WebRequest(target.url, target.validators))
        if response is None:
            return None
        response = await self.log_in_if_required(target, response, logins=logins)
        if isinstance(response, Fetched) and 200 <= response.status < 300 and is_list_body(response.body):
            return await self._decide_list(target, response)
        return await self.check_validators(await self.decide_response(target, response, now=self.clock.now()))

    async def _visit_list(self, target: Target) -> Visit | None:
        """Visit a sitemap or a feed. Only one is fetched at a time, since each may be large."""
        exclusion = find_exclusion(target.url, depth=target.depth, knowledge=self.knowledge, is_list=True)
        if exclusion:
            return lifecycle.build_excluded_visit(target, reason=exclusion, now=self.clock.now())
        async with self._list_lock:
            response = await self.requester.fetch_target(WebRequest(target.url, target.validators, limits=LIST_LIMITS))
            if response is None:
                return None
            if isinstance(response, Fetched) and 200 <= response.status < 300:
                return await self._decide_list(target, response)
            return decide.decide_visit(target, response, now=self.clock.now(), knowledge=self.knowledge)

    async def _decide_list(self, target: Target, response: Fetched) -> Visit:
        """Return the visit of a body that is, should be or may be a list. A feed is also parsed as a page."""
        url_list = await self.parser.parse_url_list(response, target.url)
        now = self.clock.now()
        if url_list is None:
            return lifecycle.build_failed_visit(target, response, now=now, reason="unreadable")
        if url_list.kind is None:
            if target.list_stats is not None and (target.version is None or target.list_stats.reads > 0):
                return build_no_list_visit(target, response, url_list.finding, now=now)
            return await self.decide_response(target, response, now=now)
        list_result = await admit_list(self.store, target, url_list, knowledge=self.knowledge)
        if url_list.kind is ListKind.FEED:
            return add_list_result(await self.decide_response(target, response, now=now), list_result)
        return build_list_visit(target, response, url_list, list_result, now=now)

    async def visit_by_head(self, target: Target) -> Visit | None:
        """Send a HEAD request. Unless it shows no change or an overload, fetch the body with the reserved request."""
        day = self.requester.day
        head = await self.requester.fetch_target(WebRequest(target.url, method="HEAD"))
        if head is None:
            self.requester.return_reserved(day=day)
            return None
        now = self.clock.now()
        if isinstance(head, Fetched) and is_unchanged_by_head(target, head):
            self.requester.return_reserved(day=day)
            return build_spared_visit(target, head, now=now)
        if isinstance(head, Fetched) and head.status in OVERLOAD_STATUSES:
            self.requester.return_reserved(day=day)
            return await self.decide_response(target, head, now=now)
        logins = self.login.login_count if self.login else 0
        response = await self.requester.fetch_reserved(WebRequest(target.url, target.validators))
        if response is None:
            return lifecycle.build_unfinished_visit(target, now=now)
        response = await self.log_in_if_required(target, response, logins=logins)
        visit = await self.decide_response(target, response, now=self.clock.now())
        self._extra_costs[target.key] += ExtraCost(requests=1)
        return replace(visit, head_outcome=judge_head(head, response))

    async def log_in_if_required(self, target: Target, response: Response, *, logins: int) -> Response:
        """Return the response or, if it requires a login, log in, fetch the page again and return the new response.

        logins: the number of logins before the request.
        A response that still requires a login becomes a 401, so that it is neither a version nor a move of the page.
        """
        if self.login is None or not self.login.is_required_by(response, url=target.url):
            return response
        retried = await self.requester.fetch_extra(target.url) if await self.login.renew(since=logins) else None
        if retried is None:
            return convert_to_unauthorized(response)
        self._extra_costs[target.key] += ExtraCost(requests=1, received_bytes=response.received_bytes)
        return convert_to_unauthorized(retried) if self.login.is_required_by(retried, url=target.url) else retried

    async def decide_response(self, target: Target, response: Response, *, now: datetime) -> Visit:
        """Return the visit for a response, and update the knowledge of the domain."""
        if not isinstance(response, Fetched):
            return await self._decide_reading(target, response, None, now=now)
        page = await self.reader.read_page(target, response, self.knowledge)
        renders = self.reader.update_memory(self.knowledge.renders, target, page)
        self.knowledge = replace(self.knowledge, renders=renders)
        self._extra_costs[target.key] += ExtraCost(received_bytes=page.received_bytes)
        if not page.is_readable:
            return lifecycle.build_failed_visit(target, response, now=now, reason="unreadable")
        if page.failure is not None:
            visit = lifecycle.build_unrendered_visit(target, response, page.failure, now=now)
        else:
            compared, is_shell = page.compared, page.is_provisional
            visit = await self._decide_reading(target, compared.response, compared.parsed, now=now, is_shell=is_shell)
            if page.is_switch and page.stored.parsed is not None:
                visit = decide.switch_reading(visit, page.stored.response, page.stored.parsed, knowledge=self.knowledge)
        return replace(visit, rendering=page.rendering)

    async def _decide_reading(
        self, target: Target, response: Response, parsed: Parsed | None, *, now: datetime, is_shell: bool = False
    ) -> Visit:
        """Return the visit for one reading of a response. parsed: the page; None if there is no new body to parse.

        is_shell: the page is an application shell that scripts have not filled yet. Shells are all alike, so they are
        no evidence for boilerplate, nor for soft 404s if the pages need a browser.
        """
        baseline = comparison = None
        if isinstance(response, Fetched) and parsed is not None and decide.needs_baseline(target, parsed):
            baseline = await load_baseline(self.store, target, response, parsed, parser=self.parser)
        if parsed is not None and baseline is not None:
            baseline, comparison = await self.compare_with_baseline(target, parsed, baseline, now=now)
        decide_with = partial(decide.decide_visit, target, response, now=now, parsed=parsed, baseline=baseline)
        visit = decide_with(knowledge=self.knowledge, comparison=comparison)
        is_in_doubt = may_be_soft_404(visit) or self._is_like_recent(visit)
        if is_in_doubt and not (is_shell and self.knowledge.renders.needs_shells):
            async with self._probe_lock:  # a probe sent by another visit serves this one, too
                lacks_evidence = visit.reason == SoftError.REPLACED
                if is_probe_due(self.knowledge.soft_errors, now=visit.at, lacks_evidence=lacks_evidence):
                    await self.send_probe(target, is_rendered=parsed is not None and parsed.version.is_rendered)
            visit = decide_with(knowledge=self.knowledge, comparison=comparison)
        if is_shell:
            visit = replace(visit, sample=None, values=())
        self.knowledge = replace(
            self.knowledge,
            mask=visit.mask or self.knowledge.mask,
            soft_errors=update_soft_error_memory(self.knowledge.soft_errors, visit),
        )
        return visit

    async def compare_with_baseline(
        self, target: Target, parsed: Parsed, baseline: Baseline, *, now: datetime
    ) -> tuple[Baseline, decide.Comparison]:
        """Compare the page with its last snapshot and, where useful, with further fetches seconds later."""
        comparison = decide.compare_page(target, parsed, baseline, now=now, knowledge=self.knowledge)
        while not self.requester.is_stopping and decide.should_fetch_again(
            target, comparison, baseline, now=now, knowledge=self.knowledge
        ):
            is_rendered, request_url = parsed.version.is_rendered, partial(self.fetch_extra, target)
            read_again = partial(self.reader.reread_page, target, knowledge=self.knowledge, is_rendered=is_rendered)
            at, known = self.clock.now(), self.knowledge
            second_fetch = await refetch_page(target, parsed, request_url, read_again, now=at, knowledge=known)
            if second_fetch is None:
                break
            if not second_fetch:
                # Count the fetch although it was useless, so that a site where this is common gets few more.
                mask = self.knowledge.mask
                self.knowledge = replace(self.knowledge, mask=replace(mask, second_fetches=mask.second_fetches + 1))
                break
            baseline = replace(baseline, second_fetches=(*baseline.second_fetches, second_fetch))
            comparison = decide.compare_page(target, parsed, baseline, now=now, knowledge=self.knowledge)
        return baseline, comparison

    async def send_probe(self, target: Target, *, is_rendered: bool) -> None:
        """Fetch a URL that cannot exist, to recognize soft 404s.

        is_rendered: whether to render the response in a browser, as the page in doubt was.
        """
        last = self.knowledge.soft_errors.probed_at
        caused_last = bool(target.soft_errors and last and target.last_visit_at and target.last_visit_at <= last)
        soft_errors = record_probe_sent(self.knowledge.soft_errors, now=self.clock.now())
        self.knowledge = replace(self.knowledge, soft_errors=soft_errors)
        request_url, known = partial(self.fetch_extra, target), self.knowledge
        absent = await probe_not_found(target, request_url, self.reader, knowledge=known, is_rendered=is_rendered)
        if absent is not None:
            soft_errors = record_probe_response(self.knowledge.soft_errors, absent, keep_good_count=caused_last)
            self.knowledge = replace(self.knowledge, soft_errors=soft_errors)

    async def check_validators(self, visit: Visit) -> Visit:
        """Check whether doubtful validators would have hidden the visit's change; return the visit with the result."""
        doubtful = choose_validators_to_verify(visit)
        if doubtful == NO_VALIDATORS or self.requester.is_stopping:
            return visit
        response = await self.fetch_extra(visit.target, visit.target.url, validators=doubtful)
        if response is None or isinstance(response, Unreached):
            return visit
        return replace(visit, refused_304=not isinstance(response, NotModified))

    def _is_like_recent(self, visit: Visit) -> bool:
        """Return whether at least MIN_ALIKE recently added pages are similar to this one, and remember its text."""
        text = visit.snapshot.version.fingerprint if visit.change is Change.ADDED and visit.snapshot else None
        if text is None:
            return False
        alike = sum(count_distance_bits(text, other) <= TOLERANCE_BITS for other in self._recent_texts)
        self._recent_texts.append(text)
        return alike >= MIN_ALIKE
