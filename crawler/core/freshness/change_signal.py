"""Change signals: what somebody says about a page that was not fetched, to be weighed by what its source is worth.

Source of the idea: Busa-Fekete et al., "Tractable near-optimal policies for crawling" with noisy change-indicating
signals, WWW 2025.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from crawler.core.http import Url


class SignalSource(StrEnum):
    """The sources that recrawl itself listens to. Others, of hints from outside, have the names that users gave."""

    SITEMAP = "sitemap"  # a lastmod later than the one before
    FEED = "feed"  # an entry of RSS or Atom that is new, or updated
    HUB = "hub"  # a listing that changed, and names the page
    PUSH = "push"  # a hint from outside that names no source


SOURCE_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,31}")


@dataclass(frozen=True, slots=True)
class ChangeSignal:
    """A source's word that a page has changed.

    url: of the page, normalised; known or not.  source: a SignalSource, or a name that SOURCE_NAME allows.
    at: when the page is said to have changed, UTC; no later than the signal was heard.
    """

    url: Url
    source: str
    at: datetime
