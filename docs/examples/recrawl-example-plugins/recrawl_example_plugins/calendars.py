"""A filter for calendars, which have a page for every day."""

import re
from urllib.parse import urlsplit

DAY = re.compile(r"/(19|20)\d\d/\d\d/\d\d/?$")


class Calendars:
    """Excludes pages of single days. An article such as /2026/05/31/title is accepted."""

    def accepts(self, url: str) -> bool:
        return DAY.search(urlsplit(url).path) is None
