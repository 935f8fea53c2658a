"""Links between the pages of the web UI: paths on the server, or names of static files."""

from collections.abc import Mapping
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
        """Return the link to the overview."""
        return "index.html" if self.are_files else "/"

    def domains(self, **parameters: object) -> str:
        """Return the link to the list of domains. parameters: its filter and order, without empty ones."""
        return "index.html" if self.are_files else _add_query("/domains", parameters)

    def domain(self, name: str, *, tab: str = "", **parameters: object) -> str:
        """Return the link to a part of the page of a domain. parameters: of the part, without empty ones."""
        if self.are_files:
            return f"domain-{_make_slug(name)}.html{'#' if tab else ''}{tab}"
        return _add_query("/domain", {"name": name, "tab": tab, **parameters})

    def tag(self, name: str, **parameters: object) -> str:
        """Return the link to the page of a tag. parameters: its group of settings, without empty ones."""
        return _add_query("/tag", {"name": name, **parameters})

    def page(self, url: str, **parameters: str) -> str:
        """Return the link to one page of a domain; empty if it has no file."""
        if self.file_urls is not None:
            return f"page-{_make_slug(url)}.html" if url in self.file_urls else ""
        return f"/page?{urlencode({'url': url, **parameters})}"

    def changes(self, **parameters: object) -> str:
        """Return the link to the list of changes. parameters: the filter, by the names of its form fields."""
        return "changes.html" if self.are_files else _add_query("/changes", parameters)

    def notifications(self, **parameters: object) -> str:
        """Return the link to the list of subscriptions. parameters: its place, without empty ones."""
        return _add_query("/notifications", parameters)

    def subscription(self, number: int) -> str:
        """Return the link to one subscription."""
        return _add_query("/notifications/subscription", {"number": number})

    def subscription_form(self, number: int = 0, **parameters: str) -> str:
        """Return the link to the form of a subscription; 0 for a new one. parameters: by the names of its fields."""
        return _add_query("/notifications/edit", {"number": number, **parameters})

    def value_form(self, url: str, **parameters: str) -> str:
        """Return the link to the form that adds a value of a page. parameters: by the names of its fields."""
        return _add_query("/values", {"url": url, **parameters})

    def actions(self, **parameters: object) -> str:
        """Return the link to the log of actions. parameters: its filter and place, without empty ones."""
        return _add_query("/actions", parameters)

    def search(self, words: str) -> str:
        """Return the link to the pages that contain these words."""
        return _add_query("/search", {"q": words})


SERVER_LINKS = UiLinks()


def build_history_url(origin: str, url: Url, **parameters: str) -> str:
    """Return the address of a page's history in the web UI at this origin. parameters: of `/page`, such as `to`."""
    return origin + SERVER_LINKS.page(url, **parameters)


def _add_query(path: str, parameters: Mapping[str, object]) -> str:
    """Return a path with the parameters that are not empty; a list gives a parameter for each of its values."""
    query = urlencode({name: value for name, value in parameters.items() if value}, doseq=True)
    return f"{path}?{query}" if query else path


def _make_slug(text: str) -> str:
    """Return a unique file name for a text, without extension: its first letters and a hash."""
    readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.partition("://")[2] or text)
    return f"{readable[:40].strip('-').lower()}-{blake2b(text.encode(), digest_size=6).hexdigest()}"


def get_external_url(url: str) -> str:
    """Return a crawled URL for use in a link; empty unless it is http or https, since others could run a script."""
    return url if url.lower().startswith(("http://", "https://")) else ""
