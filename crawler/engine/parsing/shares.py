"""Shares of what all leases of a process use together: places and memory, given out in turn, to nobody all of them."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class _Waiting:
    party: Hashable
    amount: int
    turn: "asyncio.Future[None]"


class FairShares:
    """Places for calls, each with an amount of something.

    places: calls at once. A party (a domain) has all but one of them at most, where there are several.  most: the
    amounts of all calls together; a call may want no more than that.
    Those with the fewest places come first, then who has waited longest. Nobody overtakes a call that only waits for
    its amount, or a large one would wait for ever.
    """

    def __init__(self, places: int, *, most: int) -> None:
        self._places, self._left = places, most
        self._per_party = max(places - 1, 1)
        self._had: dict[Hashable, int] = {}  # places of those who have any
        self._waiting: list[_Waiting] = []

    @asynccontextmanager
    async def share(self, party: Hashable, amount: int) -> AsyncIterator[None]:
        """A place and an amount, for as long as the block runs."""
        if not self._waiting and self._may_have(party) and amount <= self._left:
            self._take(party, amount)
        else:
            await self._turn_of(party, amount)
        try:
            yield
        finally:
            self._take_back(party, amount)

    async def _turn_of(self, party: Hashable, amount: int) -> None:
        mine = _Waiting(party, amount, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._give_out()
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._take_back(party, amount)  # it was given in the very moment
            raise

    def _may_have(self, party: Hashable) -> bool:
        """Whether there is a place, and the party may have one more."""
        return self._places > 0 and self._had.get(party, 0) < self._per_party

    def _take(self, party: Hashable, amount: int) -> None:
        self._places -= 1
        self._left -= amount
        self._had[party] = self._had.get(party, 0) + 1

    def _take_back(self, party: Hashable, amount: int) -> None:
        self._places += 1
        self._left += amount
        self._had[party] -= 1
        if not self._had[party]:
            del self._had[party]
        if self._waiting:
            self._give_out()

    def _give_out(self) -> None:
        while self._places:
            # Who was cancelled a moment ago has not left yet.
            may = (each for each in self._waiting if not each.turn.done() and self._may_have(each.party))
            first = min(may, key=lambda each: self._had.get(each.party, 0), default=None)
            if first is None or first.amount > self._left:
                return
            self._waiting.remove(first)
            self._take(first.party, first.amount)
            first.turn.set_result(None)
