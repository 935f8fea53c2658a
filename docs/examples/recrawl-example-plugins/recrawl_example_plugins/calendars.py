"""A URL filter for calendars, which have a page for each day without end."""

import re
from urllib.parse import urlsplit

DAY = re.compile(r"/(19|20)\d\d/\d\d/\d\d/?$")


class Calendars:
    """A filter that excludes pages of single days, but not articles such as /2026/05/31/title."""

    def accepts(self, url: str) -> bool:
        return DAY.search(urlsplit(url).path) is None
