"""A browser that renders pages, whose only way out is a client of ours. Uses core alone; it sends no request itself."""

from crawler.fetch.browser.browser import Browser, RenderLimits, Tab
from crawler.fetch.browser.process import BrowserMissing, find_browser
