from datetime import timedelta

import pytest

from crawler.fetch.browser import Browser, BrowserMissing, RenderLimits, find_browser

LIMITS = RenderLimits(timeout=timedelta(seconds=30))


@pytest.fixture
def browser() -> Browser:
    """A real browser, to be opened in the test; the test is skipped where there is none."""
    try:
        program = find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))
    return Browser(program, user_agent="test", limits=LIMITS)
