"""A score: papers are more important than the lists that link to them."""

from urllib.parse import urlsplit


class Papers:
    """Doubles the importance of pages under /abs/ and halves it under /list/."""

    def score(self, url: str) -> float:
        path = urlsplit(url).path
        if path.startswith("/abs/"):
            return 2.0
        return 0.5 if path.startswith("/list/") else 1.0
