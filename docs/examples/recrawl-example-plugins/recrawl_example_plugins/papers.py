"""A page score that prefers papers to the listings that contain them."""

from urllib.parse import urlsplit


class Papers:
    """A score that doubles the importance of pages under /abs/ and halves that of pages under /list/."""

    def score(self, url: str) -> float:
        path = urlsplit(url).path
        if path.startswith("/abs/"):
            return 2.0
        return 0.5 if path.startswith("/list/") else 1.0
