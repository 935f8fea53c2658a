"""Addresses of the pages: as the server has them, or as names of files that lead to each other."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import urlencode

from crawler.app.pages import Url

READABLE = 40  # characters of a file's name that tell whose it is


@dataclass(frozen=True, slots=True)
class UiLinks:
    """Where each page stands. file_urls: URLs of the pages that have a file; None where a server answers for all."""

    file_urls: AbstractSet[Url] | None = None

    @property
    def are_files(self) -> bool:
        """Whether nobody answers: then there are no forms, and nothing to page through."""
        return self.file_urls is not None

    def home(self) -> str:
        """All domains."""
        return "index.html" if self.are_files else "/"

    def domain(self, name: str) -> str:
        """One domain."""
        return f"domain-{_make_slug(name)}.html" if self.are_files else f"/domain?{urlencode({'name': name})}"

    def page(self, url: str, **parameters: str) -> str:
        """One page of a domain; empty where it has no file."""
        if self.file_urls is not None:
            return f"page-{_make_slug(url)}.html" if url in self.file_urls else ""
        return f"/page?{urlencode({'url': url, **parameters})}"

    def changes(self, **parameters: str) -> str:
        """What changed. given: the filter, by the names of its fields."""
        query = urlencode({name: value for name, value in parameters.items() if value})
        return "changes.html" if self.are_files else f"/changes{'?' if query else ''}{query}"


SERVER_LINKS = UiLinks()


def build_history_url(origin: str, url: Url) -> str:
    """The address of a page's history on the pages that are served there."""
    return origin + SERVER_LINKS.page(url)


def _make_slug(text: str) -> str:
    """A name of a file for any text: some of its letters to be read, and a hash to tell it from all others."""
    readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.partition("://")[2] or text)
    return f"{readable[:READABLE].strip('-').lower()}-{blake2b(text.encode(), digest_size=6).hexdigest()}"


def get_external_url(url: str) -> str:
    """The address of a stranger's page for a link; empty for all but http and https: others could run something."""
    return url if url.lower().startswith(("http://", "https://")) else ""
