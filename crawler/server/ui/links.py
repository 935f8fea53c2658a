"""Links between the pages of the web UI: paths on the server, or names of static files."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import urlencode

from crawler.app.pages import Url


@dataclass(frozen=True, slots=True)
class UiLinks:
    """The links to the pages. file_urls: the URLs that have a file; None for the pages of a server."""

    file_urls: AbstractSet[Url] | None = None

    @property
    def are_files(self) -> bool:
        """Whether the pages are static files, without forms and paging."""
        return self.file_urls is not None

    def home(self) -> str:
        """Return the link to the list of domains."""
        return "index.html" if self.are_files else "/"

    def domain(self, name: str) -> str:
        """Return the link to one domain."""
        return f"domain-{_make_slug(name)}.html" if self.are_files else f"/domain?{urlencode({'name': name})}"

    def page(self, url: str, **parameters: str) -> str:
        """Return the link to one page of a domain; empty if it has no file."""
        if self.file_urls is not None:
            return f"page-{_make_slug(url)}.html" if url in self.file_urls else ""
        return f"/page?{urlencode({'url': url, **parameters})}"

    def changes(self, **parameters: str) -> str:
        """Return the link to the list of changes. parameters: the filter, by the names of its form fields."""
        query = urlencode({name: value for name, value in parameters.items() if value})
        return "changes.html" if self.are_files else f"/changes{'?' if query else ''}{query}"


SERVER_LINKS = UiLinks()


def build_history_url(origin: str, url: Url, **parameters: str) -> str:
    """Return the address of a page's history in the web UI at this origin. parameters: of `/page`, such as `to`."""
    return origin + SERVER_LINKS.page(url, **parameters)


def _make_slug(text: str) -> str:
    """Return a unique file name for a text, without extension: its first letters and a hash."""
    readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.partition("://")[2] or text)
    return f"{readable[:40].strip('-').lower()}-{blake2b(text.encode(), digest_size=6).hexdigest()}"


def get_external_url(url: str) -> str:
    """Return a crawled URL for use in a link; empty unless it is http or https, since others could run a script."""
    return url if url.lower().startswith(("http://", "https://")) else ""
