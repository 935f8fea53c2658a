from datetime import timedelta

import pytest

from crawler.fetch.browser import Browser, BrowserMissing, RenderLimits, find_browser

LIMITS = RenderLimits(timeout=timedelta(seconds=30))


@pytest.fixture
def browser() -> Browser:
    """Return a real browser for the test to open; skip the test if there is none."""
    try:
        program = find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))
    return Browser(program, user_agent="test", limits=LIMITS)
