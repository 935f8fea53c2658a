"""A browser that renders pages, whose only way out is a client of ours. Uses core alone; it sends no request itself."""

from crawler.web.browser.browser import RENDER_LIMITS, Browser, RenderLimits, Tab
from crawler.web.browser.find import BrowserMissing, find_browser
from crawler.web.browser.messages import AnswerRequest, BrowserAnswer, BrowserRequest

__all__ = [
    "RENDER_LIMITS",
    "AnswerRequest",
    "Browser",
    "BrowserAnswer",
    "BrowserMissing",
    "BrowserRequest",
    "RenderLimits",
    "Tab",
    "find_browser",
]
