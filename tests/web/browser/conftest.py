from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from crawler.web.browser import Browser, BrowserMissing, RenderLimits, find_browser

LIMITS = RenderLimits(longest=timedelta(seconds=30))


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A real browser; the test is skipped where there is none."""
    try:
        program = find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))
    async with Browser(program, user_agent="test", limits=LIMITS) as found:
        yield found
