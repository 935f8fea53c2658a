"""One look at a page: fetched, parsed, compared with the last Snapshot, and decided. Nothing is stored here."""

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from crawler.core.change.change import Change
from crawler.core.change.edits import SiteEdit
from crawler.core.change.observation import take_site_edits
from crawler.core.freshness.terms import Wanted
from crawler.core.http.response import NO_VALIDATORS, Answer, Fetched, NotModified, Unreached, Validators
from crawler.core.http.urls import PageKey, Url
from crawler.core.page.fingerprint import Fingerprint, distance_bits
from crawler.core.page.lists.source import is_list_body
from crawler.core.page.lists.url_list import ListKind
from crawler.core.page.snapshot import Parsed
from crawler.core.soft_errors import SoftError, is_probe_due, probe_answered, probe_sent
from crawler.core.validators import head_outcome_of, head_shows_same, spared_visit, validators_to_verify
from crawler.core.visit.decide import Comparison, as_kept, compare, decide, needs_baseline, wants_second_fetch
from crawler.core.visit.lifecycle import failed_visit, refused_visit, unfinished_visit, unrendered_visit
from crawler.core.visit.lists import list_visit, no_list_visit, with_news
from crawler.core.visit.soft_errors import may_be_soft_404, memory_after
from crawler.core.visit.visit import OVERLOADED, Baseline, Known, Target, Visit, refusal_of
from crawler.engine.extra_fetches import baseline_of, fetch_again, probe_not_found
from crawler.engine.lists import LIST_BOUNDS, admit_list
from crawler.engine.rendering.page_reader import PageReader
from crawler.engine.requests.login import Login, no_entry
from crawler.engine.requests.requester import Requester, WebRequest
from crawler.engine.store_port import LeasedStore

MOST_FIRSTS = 64  # texts of new pages that are remembered
ENOUGH_ALIKE = 3
LIKE_BITS = 16  # of 64: near enough to ask; short texts that differ in an address and a number are no nearer


@dataclass(frozen=True, slots=True)
class ExtraCost:
    """What a look cost beside the one answer that it is decided by."""

    requests: int = 0
    received_bytes: int = 0

    def __add__(self, other: "ExtraCost") -> "ExtraCost":
        return ExtraCost(self.requests + other.requests, self.received_bytes + other.received_bytes)


class Visitor:
    """Looks at the pages of one domain, any number of them at a time.

    known: what is known of the domain; each look adds to it.  login: for pages that turn into its form.
    """

    def __init__(
        self, store: LeasedStore, requester: Requester, reader: PageReader, known: Known, *, login: Login | None
    ) -> None:
        self.store, self.clock, self.requester, self.login = store, store.clock, requester, login
        self.reader, self.parser, self.known = reader, reader.parser, known
        self._recent_texts: deque[Fingerprint] = deque(maxlen=MOST_FIRSTS)  # of pages read for the first time
        self._probing = asyncio.Lock()
        self._reading_list = asyncio.Lock()  # while a list is asked for, read and admitted, so that one is in memory
        self._beside: defaultdict[PageKey, ExtraCost] = defaultdict(ExtraCost)  # of looks under way

    def take_site_edits(self, *, at: datetime) -> SiteEdit | None:
        """The change of the whole site's boilerplate that is due to be told, if any; it counts as told from now on."""
        edit, mask = take_site_edits(self.known.mask, at=at)
        self.known = replace(self.known, mask=mask)
        return edit

    def take_pages_to_render(self, *, is_dry: bool) -> tuple[PageKey, ...]:
        """Return stored pages that a browser should read now; from then on they count as named.

        is_dry: the domain has no other page to fetch.
        """
        pages, renders = self.reader.pages_to_render(self.known.renders, is_dry=is_dry)
        self.known = replace(self.known, renders=renders)
        return pages

    async def visit(self, target: Target) -> Visit | None:
        """One look at a page; None if it was not begun, or the lease ended before it did."""
        try:
            visit = await self._looked(target)
        finally:
            beside = self._beside.pop(target.key, ExtraCost())
        return visit and replace(
            visit, received_bytes=visit.received_bytes + beside.received_bytes, requests_beside=beside.requests
        )

    async def ask_beside(self, target: Target, url: Url, *, validators: Validators = NO_VALIDATORS) -> Answer | None:
        """One request more for a look at a page; None where the budget has none left, or the lease is ending."""
        answer = await self.requester.look_on(url, validators=validators)
        if answer is not None:
            self._beside[target.key] += ExtraCost(requests=1, received_bytes=answer.received_bytes)
        return answer

    async def _looked(self, target: Target) -> Visit | None:
        if target.known_list is not None:
            return await self._looked_at_list(target)
        refusal = refusal_of(target.url, depth=target.depth, known=self.known)
        if refusal:
            return refused_visit(target, reason=refusal, now=self.clock.now())
        if target.wanted is Wanted.TO_RENDER:  # nothing can be rendered of a 304
            target = replace(target, validators=NO_VALIDATORS, asks_head=False)
        if target.asks_head and await self.requester.reserve():
            return await self.visit_by_head(target)
        logins = self.login.done if self.login else 0
        answer = await self.requester.look(WebRequest(target.url, target.validators))
        if answer is None:
            return None
        answer = await self.let_in(target, answer, logins=logins)
        if isinstance(answer, Fetched) and 200 <= answer.status < 300 and is_list_body(answer.body):
            return await self._with_list(target, answer)
        return await self.tested(await self.decided(target, answer, now=self.clock.now()))

    async def _looked_at_list(self, target: Target) -> Visit | None:
        """A look at a sitemap or a feed: one at a time, since each may be large."""
        refusal = refusal_of(target.url, depth=target.depth, known=self.known, is_list=True)
        if refusal:
            return refused_visit(target, reason=refusal, now=self.clock.now())
        async with self._reading_list:
            answer = await self.requester.look(WebRequest(target.url, target.validators, bounds=LIST_BOUNDS))
            if answer is None:
                return None
            if isinstance(answer, Fetched) and 200 <= answer.status < 300:
                return await self._with_list(target, answer)
            return decide(target, answer, now=self.clock.now(), known=self.known)

    async def _with_list(self, target: Target, answer: Fetched) -> Visit:
        """The visit of a body that is a list, or should be; a feed is read as a page as well."""
        found = await self.parser.url_list(answer, target.url)
        now = self.clock.now()
        if found is None:
            return failed_visit(target, answer, now=now, reason="unreadable")
        if found.kind is None:
            if target.known_list is not None and (target.version is None or target.known_list.reads > 0):
                return no_list_visit(target, answer, found.finding, now=now)
            return await self.decided(target, answer, now=now)
        news = await admit_list(self.store, target, found, known=self.known)
        if found.kind is ListKind.FEED:
            return with_news(await self.decided(target, answer, now=now), news)
        return list_visit(target, answer, found, news, now=now)

    async def visit_by_head(self, target: Target) -> Visit | None:
        """Look by HEAD, and ask for the body only if length or date is not as it was. That request is reserved."""
        day = self.requester.day
        head = await self.requester.look(WebRequest(target.url, method="HEAD"))
        if head is None:
            self.requester.give_back(day=day)
            return None
        now = self.clock.now()
        if isinstance(head, Fetched) and head_shows_same(target, head):
            self.requester.give_back(day=day)
            return spared_visit(target, head, now=now)
        if isinstance(head, Fetched) and head.status in OVERLOADED:
            self.requester.give_back(day=day)
            return await self.decided(target, head, now=now)
        logins = self.login.done if self.login else 0
        answer = await self.requester.look_reserved(WebRequest(target.url, target.validators))
        if answer is None:
            return unfinished_visit(target, now=now)
        answer = await self.let_in(target, answer, logins=logins)
        visit = await self.decided(target, answer, now=self.clock.now())
        self._beside[target.key] += ExtraCost(requests=1)
        return replace(visit, head_outcome=head_outcome_of(head, answer))

    async def let_in(self, target: Target, answer: Answer, *, logins: int) -> Answer:
        """The answer, or where it wants a login, what the page says after one. logins: done when it was asked.

        What wants a login all the same is no version of the page, and no move of it.
        """
        if self.login is None or not self.login.is_asked_by(answer, url=target.url):
            return answer
        later = await self.requester.look_on(target.url) if await self.login.renew(since=logins) else None
        if later is None:
            return no_entry(answer)
        self._beside[target.key] += ExtraCost(requests=1, received_bytes=answer.received_bytes)
        return no_entry(later) if self.login.is_asked_by(later, url=target.url) else later

    async def decided(self, target: Target, answer: Answer, *, now: datetime) -> Visit:
        """The visit that an answer makes; what it teaches of the domain is known from then on."""
        if not isinstance(answer, Fetched):
            return await self._judged(target, answer, None, now=now)
        read = await self.reader.read(target, answer, self.known)
        self.known = replace(self.known, renders=self.reader.learnt(self.known.renders, target, read))
        self._beside[target.key] += ExtraCost(received_bytes=read.received_bytes)
        if not read.is_readable:
            return failed_visit(target, answer, now=now, reason="unreadable")
        if read.failure is not None:
            visit = unrendered_visit(target, answer, read.failure, now=now)
        else:
            judged = read.judged
            visit = await self._judged(target, judged.answer, judged.parsed, now=now, is_shell=read.is_provisional)
            if read.is_switch and read.kept.parsed is not None:
                visit = as_kept(visit, read.kept.answer, read.kept.parsed, known=self.known)
        return replace(visit, rendering=read.rendering)

    async def _judged(
        self, target: Target, answer: Answer, parsed: Parsed | None, *, now: datetime, is_shell: bool = False
    ) -> Visit:
        """The visit that one reading of an answer makes. parsed: None where there is nothing to read.

        is_shell: the page's scripts have not written it yet. All such pages look alike: that teaches nothing of the
        boilerplate, and nothing of soft 404s where such pages differ in a browser.
        """
        baseline = comparison = None
        if isinstance(answer, Fetched) and parsed is not None and needs_baseline(target, parsed):
            baseline = await baseline_of(self.store, target, answer, parsed, readers=self.parser)
        if parsed is not None and baseline is not None:
            baseline, comparison = await self.compared(target, parsed, baseline, now=now)

        judged = partial(decide, target, answer, now=now, parsed=parsed, baseline=baseline, comparison=comparison)
        visit = judged(known=self.known)
        is_in_doubt = may_be_soft_404(visit) or self._is_like_recent(visit)
        if is_in_doubt and not (is_shell and self.known.renders.needs_shells):
            async with self._probing:  # a probe that another visit has sent answers for this one, too
                lacks_evidence = visit.reason == SoftError.REPLACED
                if is_probe_due(self.known.soft_errors, now=visit.at, lacks_evidence=lacks_evidence):
                    await self.probe(target, is_rendered=parsed is not None and parsed.version.is_rendered)
            visit = judged(known=self.known)
        if is_shell:
            visit = replace(visit, sample=None)
        self.known = replace(
            self.known, mask=visit.mask or self.known.mask, soft_errors=memory_after(self.known.soft_errors, visit)
        )
        return visit

    async def compared(
        self, target: Target, parsed: Parsed, baseline: Baseline, *, now: datetime
    ) -> tuple[Baseline, Comparison]:
        """The page compared with its last Snapshot and, where that would tell more, with itself seconds later."""
        comparison = compare(target, parsed, baseline, now=now, known=self.known)
        while not self.requester.is_stopping and wants_second_fetch(
            target, comparison, baseline, now=now, known=self.known
        ):
            read = partial(self.reader.read_again, target, known=self.known, is_rendered=parsed.version.is_rendered)
            again = await fetch_again(
                target, parsed, partial(self.ask_beside, target), read, now=self.clock.now(), known=self.known
            )
            if again is None:
                break
            if not again:
                # It has cost a request all the same: where such looks are not wanted, few more are taken.
                mask = self.known.mask
                self.known = replace(self.known, mask=replace(mask, second_fetches=mask.second_fetches + 1))
                break
            baseline = replace(baseline, second_fetches=(*baseline.second_fetches, again))
            comparison = compare(target, parsed, baseline, now=now, known=self.known)
        return baseline, comparison

    async def probe(self, target: Target, *, is_rendered: bool) -> None:
        """Ask the domain for a URL that cannot exist, so that a soft 404 is recognised.

        is_rendered: as a browser shows it, since the page in doubt was seen so.
        """
        last = self.known.soft_errors.probed_at
        is_later = bool(target.soft_errors and last and target.last_look_at and target.last_look_at <= last)
        self.known = replace(self.known, soft_errors=probe_sent(self.known.soft_errors, now=self.clock.now()))
        absent = await probe_not_found(
            target, partial(self.ask_beside, target), self.reader, known=self.known, is_rendered=is_rendered
        )
        if absent is not None:
            soft_errors = probe_answered(self.known.soft_errors, absent, keep_good_count=is_later)
            self.known = replace(self.known, soft_errors=soft_errors)

    async def tested(self, visit: Visit) -> Visit:
        """The visit, with whether its doubted validators would have hidden its change (challenge)."""
        doubted = validators_to_verify(visit)
        if doubted == NO_VALIDATORS or self.requester.is_stopping:
            return visit
        answer = await self.ask_beside(visit.target, visit.target.url, validators=doubted)
        if answer is None or isinstance(answer, Unreached):
            return visit
        return replace(visit, refused_304=not isinstance(answer, NotModified))

    def _is_like_recent(self, visit: Visit) -> bool:
        """Whether more texts of new pages are like this one than chance explains; remembers it."""
        text = visit.snapshot.version.fingerprint if visit.change is Change.FIRST and visit.snapshot else None
        if text is None:
            return False
        alike = sum(distance_bits(text, other) <= LIKE_BITS for other in self._recent_texts)
        self._recent_texts.append(text)
        return alike >= ENOUGH_ALIKE
