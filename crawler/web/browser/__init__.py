"""A browser that renders pages, whose only way out is a client of ours. Uses core alone; it sends no request itself."""

from crawler.web.browser.browser import Browser, RenderLimits, Tab
from crawler.web.browser.find import BrowserMissing, find_browser
from crawler.web.browser.messages import BrowserAnswer, BrowserRequest

__all__ = [
    "Browser",
    "BrowserAnswer",
    "BrowserMissing",
    "BrowserRequest",
    "RenderLimits",
    "Tab",
    "find_browser",
]
