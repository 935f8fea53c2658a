"""Who waits for a turn that nobody wants any more is let go."""

import asyncio
from datetime import timedelta

from crawler.crawl.pacer import Pacer
from tests.patience import PATIENCE_S

LONG = timedelta(days=1)


async def test_nobody_waits_for_a_turn_that_is_not_wanted_any_more() -> None:
    """After Ctrl-C eight pages that waited for their turns once took eight times the delay to end."""
    over = False
    pacer = Pacer(delay=LONG, wait=LONG)

    async def room() -> None:
        pass

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as waiting:
        for _ in range(8):
            waiting.create_task(pacer.pass_through(room, is_over=lambda: over))
        await asyncio.sleep(0)
        over = True

    assert pacer.wait > LONG / 2  # nobody has used the turn
