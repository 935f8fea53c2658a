"""A filter: a calendar has a page for each day there ever was, and for each that will be."""

import re
from urllib.parse import urlsplit

DAY = re.compile(r"/(19|20)\d\d/\d\d/\d\d/?$")


class Calendars:
    """Refuses the pages of single days. An article of a day, /2026/05/31/title, is not one of them."""

    def accepts(self, url: str) -> bool:
        return DAY.search(urlsplit(url).path) is None
