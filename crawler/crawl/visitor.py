"""One look at a page: asked for, read, held against the last Snapshot, and decided; it writes nothing."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

from crawler.clock import Clock
from crawler.core.change import Change
from crawler.core.http import NO_VALIDATORS, Answer, Fetched, NotModified, Unreached, Validators
from crawler.core.page import Fingerprint, Understood, distance_bits
from crawler.core.soft_errors import asked, is_due, told
from crawler.core.validators import headed_of, in_doubt, is_told_same, spared
from crawler.core.visit import (
    BUSY,
    Comparison,
    Earlier,
    Known,
    Target,
    Visit,
    compare,
    decide,
    is_suspect,
    needs_earlier,
    needs_reading,
    refusal_of,
    refuse,
    unfinished,
    unreadable,
    walls_after,
    wants_again,
    wants_outline,
)
from crawler.crawl.extra_fetches import ask_nowhere, earlier_of, look_again
from crawler.crawl.parser_pool import Lens
from crawler.crawl.requester import Asker
from crawler.store.record import Kept

# The body of a page's last Snapshot, if it is kept; told what the page says now.
FindKept = Callable[[Target, Understood], Awaitable[Kept | None]]


class Looker:
    """Looks at the pages of one domain, any number of them at a time.

    known: what the domain knows; each look adds to it.
    """

    def __init__(self, asker: Asker, readers: Lens, known: Known, *, clock: Clock, kept: FindKept) -> None:
        self.asker, self.readers, self.known, self.clock, self.kept = asker, readers, known, clock, kept
        self.firsts = Firsts()

    async def look(self, target: Target) -> Visit | None:
        """One look; None if it was not begun, or the lease ended before it did."""
        refusal = refusal_of(target.url, depth=target.depth, known=self.known)
        if refusal:
            return refuse(target, reason=refusal, now=self.clock.now())
        if target.asks_head:
            return await self.look_by_head(target)
        answer = await self.asker.look(target.url, validators=target.validators)
        if answer is None:
            return None
        visit = await self.decided(target, answer, now=self.clock.now())
        return await self.tested(visit, in_doubt(visit))

    async def look_by_head(self, target: Target) -> Visit | None:
        """A look that asks for no body if length and date are as they were."""
        head = await self.asker.look(target.url, method="HEAD")
        if head is None:
            return None
        now = self.clock.now()
        if isinstance(head, Fetched) and is_told_same(target, head):
            return spared(target, head, now=now)
        if isinstance(head, Fetched) and head.status in BUSY:
            return await self.decided(target, head, now=now)
        answer = await self.asker.look_on(target.url, validators=target.validators)
        if answer is None:
            return unfinished(target, now=now)
        visit = await self.decided(target, answer, now=self.clock.now())
        return replace(visit, again=visit.again + 1, headed=headed_of(head, answer))

    async def decided(self, target: Target, answer: Answer, *, now: datetime) -> Visit:
        """What the answer means, and what is known of the domain after it."""
        understood = earlier = comparison = None
        if isinstance(answer, Fetched) and needs_reading(target, answer):
            understood = await self.readers.read(answer, target.url, outlined=wants_outline(target, self.known))
            if understood is None:
                return unreadable(target, answer, now=now)
            if needs_earlier(target, understood):
                kept = await self.kept(target, understood)
                earlier = await earlier_of(kept, target, answer, understood, readers=self.readers)
        if understood is not None and earlier is not None:
            earlier, comparison = await self.compared(target, understood, earlier, now=now)

        judged = partial(decide, target, answer, now=now, understood=understood, earlier=earlier, comparison=comparison)
        visit = judged(known=self.known)
        if self.is_doubtful(visit):
            await self.probe(target)
            visit = judged(known=self.known)
        self.known = replace(self.known, mask=visit.mask or self.known.mask, walls=walls_after(self.known.walls, visit))
        return visit

    async def compared(
        self, target: Target, understood: Understood, earlier: Earlier, *, now: datetime
    ) -> tuple[Earlier, Comparison]:
        """What separates the page from that and, where it would tell more, from itself seconds later."""
        comparison = compare(target, understood, earlier, now=now, known=self.known)
        while not self.asker.is_stopping and wants_again(target, comparison, earlier, now=now, known=self.known):
            again = await look_again(
                target, understood, self.asker.ask, self.readers, now=self.clock.now(), known=self.known
            )
            if again is None:
                break
            if not again:
                # It has cost a request all the same: where such looks are not wanted, few more are taken.
                self.known = replace(self.known, mask=replace(self.known.mask, pairs=self.known.mask.pairs + 1))
                break
            earlier = replace(earlier, again=(*earlier.again, again))
            comparison = compare(target, understood, earlier, now=now, known=self.known)
        return earlier, comparison

    def is_doubtful(self, visit: Visit) -> bool:
        """Whether what the domain says where nothing can be would tell more of this look."""
        return is_due(self.known.walls, now=visit.at) and (is_suspect(visit) or self.firsts.are_like(visit))

    async def probe(self, target: Target) -> None:
        """Ask the domain for what cannot exist, to know that again."""
        last = self.known.walls.asked_at
        is_later = bool(target.walled and last and target.last_look_at and target.last_look_at <= last)
        self.known = replace(self.known, walls=asked(self.known.walls, now=self.clock.now()))
        absent = await ask_nowhere(target, self.asker.ask, self.readers, known=self.known)
        if absent is not None:
            self.known = replace(self.known, walls=told(self.known.walls, absent, is_later=is_later))

    async def tested(self, visit: Visit, doubted: Validators) -> Visit:
        """A challenge that found a change, with what the server says to the validators that it would have got."""
        if doubted == NO_VALIDATORS or self.asker.is_stopping:
            return visit
        answer = await self.asker.ask(visit.target.url, validators=doubted)
        if answer is None or isinstance(answer, Unreached):
            return visit
        return replace(visit, again=visit.again + 1, refused_304=not isinstance(answer, NotModified))


MOST_FIRSTS = 64

ENOUGH_ALIKE = 3

LIKE_BITS = 16  # of 64: near enough to ask; short texts that differ in an address and a number are no nearer


class Firsts:
    """The last few texts of pages that were read for the first time, to notice when they say nearly the same."""

    def __init__(self) -> None:
        self._texts: deque[Fingerprint] = deque(maxlen=MOST_FIRSTS)

    def are_like(self, visit: Visit) -> bool:
        """Whether earlier ones are like this, more of them than two pages of one kind are by chance; takes it in."""
        text = visit.snapshot.version.fingerprint if visit.change is Change.FIRST and visit.snapshot else None
        if text is None:
            return False
        alike = sum(distance_bits(text, other) <= LIKE_BITS for other in self._texts)
        self._texts.append(text)
        return alike >= ENOUGH_ALIKE
