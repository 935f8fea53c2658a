"""What the API answers with, where the command has no value of that form; the others are the store's own."""

from dataclasses import dataclass
from datetime import datetime

from crawler.core.domain import Domain
from crawler.core.http import Url
from crawler.core.visit import State
from crawler.store.report import TakenPage, VersionContent


@dataclass(frozen=True, slots=True)
class DomainItem:
    """A registered domain."""

    domain: str
    root: Url
    aliases: list[str]
    paused: bool
    registered_at: datetime

    @classmethod
    def of(cls, domain: Domain) -> "DomainItem":
        return cls(
            domain=domain.authority,
            root=domain.root,
            aliases=sorted(domain.aliases),
            paused=domain.paused,
            registered_at=domain.registered_at,
        )


@dataclass(frozen=True, slots=True)
class PageItem:
    """A page with its newest version. text: None where it was not asked for."""

    url: Url
    state: State
    status: int | None
    version: int
    version_at: datetime | None
    seen_at: datetime | None
    changed_at: datetime | None
    title: str
    language: str
    content_type: str
    importance: float | None
    digest: str | None
    text: str | None

    @classmethod
    def of(cls, page: TakenPage, *, with_text: bool) -> "PageItem":
        return cls(
            url=page.url,
            state=page.state,
            status=page.status,
            version=page.version,
            version_at=page.version_at,
            seen_at=page.seen_at,
            changed_at=page.changed_at,
            title=page.title,
            language=page.language,
            content_type=page.content_type,
            importance=page.importance,
            digest=page.digest.hex() if page.digest is not None else None,
            text=page.text if with_text else None,
        )


@dataclass(frozen=True, slots=True)
class PageText:
    """What a version of a page said. state: of the page at the instant that was asked for."""

    url: Url
    state: State
    version: int
    version_at: datetime
    until: datetime | None
    title: str
    language: str
    content_type: str
    text: str

    @classmethod
    def of(cls, content: VersionContent) -> "PageText":
        return cls(
            url=content.url,
            state=content.state,
            version=content.version.number,
            version_at=content.version.at,
            until=content.version.until,
            title=content.version.title,
            language=content.version.language,
            content_type=content.version.content_type,
            text=content.text,
        )
