"""A browser that renders pages. It reaches the network only through the caller's HTTP client. Uses only core."""

from crawler.fetch.browser.browser import Browser, RenderLimits, Tab
from crawler.fetch.browser.process import BrowserMissing, find_browser
