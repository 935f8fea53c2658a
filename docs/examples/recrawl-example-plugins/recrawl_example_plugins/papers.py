"""A score: a paper matters more than the listings that it stands in."""

from urllib.parse import urlsplit


class Papers:
    """Counts pages under /abs/ double, and those under /list/ half."""

    def score(self, url: str) -> float:
        path = urlsplit(url).path
        if path.startswith("/abs/"):
            return 2.0
        return 0.5 if path.startswith("/list/") else 1.0
