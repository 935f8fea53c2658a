"""The endpoints of the API that read: their parameters and results."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path as FilePath
from typing import Annotated, Any, Generic, TypeVar

from fastapi import HTTPException, Path, Query
from msgspec.structs import replace
from pydantic import BeforeValidator, WithJsonSchema

from crawler import times
from crawler.app import pages as page_texts
from crawler.app import rules, screenshots, tags
from crawler.app.changes import ALL_KINDS, ChangeFilter, FeedItem, read_changes_within
from crawler.app.delivery import notifications
from crawler.app.delivery.exports import SearchHit, require_words, search_index
from crawler.app.delivery.notifications import SubscriptionState
from crawler.app.domains import Domain, DomainStatus, describe_domain, inspect_domain, list_domains_after
from crawler.app.explain import explain_for_json
from crawler.app.page_values import MAX_READINGS, ValueReading, read_values
from crawler.app.pages import PageKey, PageVersion, State, Url
from crawler.app.registration import find_domains, get_domain
from crawler.app.reports import ANY_AGE, AppDatabase, DomainReport, measure_freshness
from crawler.app.screenshots import Screenshot
from crawler.app.settings import build_settings_schema
from crawler.app.status import Wait, WaitReason, format_wait
from crawler.format.kinds import parse_kinds

MAX_CHANGES, MAX_PAGES, MAX_TEXTS, MAX_VERSIONS, MAX_HITS, MAX_REPORTS = 1000, 500, 50, 500, 50, 50
MAX_DOMAINS, MAX_SUBSCRIPTIONS, MAX_LETTERS = 1000, 200, 200
MAX_CHARS = 4 << 20  # of texts in one response; a longer first text is returned anyway
MAX_CURSOR, MAX_VERSION = 2**63 - 1, 2**31 - 1
WEEK = timedelta(days=7)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Items(Generic[T]):
    """A part of a list. next: the cursor of the next part; null at the end."""

    items: Sequence[T]
    next: str | None


SettingsDocument = Annotated[dict[str, Any], WithJsonSchema(build_settings_schema(is_change=False))]
TagSettings = Annotated[dict[str, Any], WithJsonSchema(build_settings_schema(is_change=False, of_tag=True))]


@dataclass(frozen=True, slots=True)
class DomainItem:
    """A registered domain."""

    domain: str
    root: Url
    aliases: list[str]
    paused: bool
    registered_at: datetime
    tags: list[str]


@dataclass(frozen=True, slots=True)
class TagDocument:
    """A tag of domains. settings: those that its domains inherit, without those that it does not set."""

    tag: str
    domains: list[str]
    settings: TagSettings


@dataclass(frozen=True, slots=True)
class RuleDocument:
    """A rule of a domain. pages: the number of pages that count toward max_pages; null without that limit."""

    pattern: str
    min_interval_seconds: float | None
    max_interval_seconds: float | None
    weight: float | None
    once: bool
    max_pages: int | None
    ignore: Sequence[str]
    watch: Sequence[str]
    ignore_text: Sequence[str]
    values: Sequence[str]
    render: str | None
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class WaitDocument:
    """Why a domain is not being fetched now. sentence: the reason in words.  until: null without a known end.

    detail: the holder of the lease, the reason for a suspension, or the size of a spent budget.
    pages: the number of waiting pages that a user requested.
    """

    reason: WaitReason
    sentence: str
    until: datetime | None
    detail: str
    pages: int


@dataclass(frozen=True, slots=True)
class StorageDocument:
    """The bytes of a domain's texts, headers and bodies, and those that pruning by its settings would free.

    is_exact: all pages were read instead of a sample.
    """

    stored_bytes: float
    freeable_bytes: float
    is_exact: bool


@dataclass(frozen=True, slots=True)
class DomainDocument:
    """A domain with its settings and state. wait: why it is not being fetched now; null if it is.

    sources: where each setting comes from that is not the default: own, or "tag " and the name of a tag.
    """

    domain: str
    root: Url
    aliases: list[str]
    paused: bool
    registered_at: datetime
    tags: list[str]
    settings: SettingsDocument
    sources: dict[str, str]
    rules: list[RuleDocument]
    status: DomainStatus
    wait: WaitDocument | None
    storage: StorageDocument


@dataclass(frozen=True, slots=True)
class DeadLetterDocument:
    """A message that was given up. error: the last error.  changes: as in the change feed, without their blocks."""

    number: int
    subscription: int
    target: str
    since: datetime
    attempts: int
    error: str
    changes: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture. data: the file, in Base64."""

    media_type: str
    data: str


@dataclass(frozen=True, slots=True)
class PageItem:
    """A page with its newest version.

    status: the HTTP status of the last fetch, or null.  version_at: when the version was first seen.  seen_at: the last
    successful fetch.  changed_at: the last change, or null.  importance: relative to the domain's mean of 1.  digest:
    the digest of the body, in hexadecimal.  confidence: how certain the choice of the
    content is, 0 to 1.  content: the content text, or null if it was not requested.
    """

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
    confidence: float
    content: str | None


@dataclass(frozen=True, slots=True)
class PageText:
    """The texts of a version of a page.

    state: the state of the page at the requested instant.  until: when the next version was first seen, or null.
    content: what a reader would call the page.  confidence: how certain its choice is, 0 to 1.
    text: the text whose changes are reported.  metadata: what the page says about itself, such as author and dates.
    """

    url: Url
    state: State
    version: int
    version_at: datetime
    until: datetime | None
    title: str
    language: str
    content_type: str
    content: str
    confidence: float
    text: str
    metadata: dict[str, Any]


def build_row(kind: type[T], source: object, **overrides: object) -> T:
    """Return a value of `kind` with the fields of the same name of another value; overrides replace some of them."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: overrides[name] if name in overrides else getattr(source, name) for name in names})


def _cut(found: Sequence[T], limit: int) -> tuple[Sequence[T], bool]:
    """Return the first items of a list, and whether there are more."""
    return found[:limit], len(found) > limit


def describe_tag(listed: tags.TagSummary) -> TagDocument:
    """Return a tag for JSON."""
    described: dict[str, Any] = tags.describe_tag(listed)
    return TagDocument(**described)


def describe_wait(domain: Domain, wait: Wait | None, *, now: datetime) -> WaitDocument | None:
    """Return why a domain is not being fetched now; None if it is."""
    if wait is None:
        return None
    return build_row(WaitDocument, wait, sentence=f"{domain.authority} {format_wait(wait, domain, now=now)}")


def build_text_query(description: str) -> Any:
    return Query(max_length=8192, description=description)


def build_limit_query(maximum: int, note: str = "") -> Any:
    return Query(ge=1, le=maximum, description=f"The maximum number of items.{note}")


# In a query, an unescaped plus sign arrives as a space.
Instant = Annotated[datetime, BeforeValidator(lambda text: times.parse_instant(text.replace(" ", "+")))]
CURSOR = "The cursor: `next` of the previous response."
PAGE = build_text_query("The URL of the page.")
DomainName = Annotated[str, Path(max_length=8192, description="A registered domain, such as docs.example.com.")]
Number = Annotated[int, Path(ge=1, le=MAX_CURSOR, description="The number of a subscription or dead letter.")]
NUMBER_CURSOR = Query(ge=0, le=MAX_CURSOR, description=CURSOR)
TagName = Annotated[str, Path(max_length=8192, description="The name of a tag, such as news.")]
TAG = build_text_query("Only domains with this tag.")
SINCE = Query(description="Only changes found at or after this ISO 8601 time.")
KIND = Query(description="Only these kinds of change, separated by commas, such as changed,gone; all if omitted.")


@dataclass(frozen=True, slots=True)
class Api:
    """The endpoints that read one store. OpenAPI has their names, docstrings and annotations.

    home: the folder of the tokens and the search index.  now: returns the current time.  request_index: requests an
    update of the search index and returns the error of the last update, or an empty string.
    """

    db: AppDatabase
    home: FilePath
    now: Callable[[], datetime]
    request_index: Callable[[], str]

    async def list_domains(
        self,
        *,
        tag: Annotated[str | None, TAG] = None,
        after: Annotated[str, build_text_query(CURSOR)] = "",
        limit: Annotated[int, build_limit_query(MAX_DOMAINS)] = 100,
    ) -> Items[DomainItem]:
        """List the registered domains in alphabetical order."""
        if tag is None:
            selected = await list_domains_after(self.db, after, max_count=limit + 1)
        else:
            tagged = await tags.find_tagged_domains(self.db, tag)
            selected = sorted((each for each in tagged if each.authority > after), key=lambda each: each.authority)
        found, more = _cut(selected, limit)
        rows = []
        for each in found:
            names = {"aliases": sorted(each.aliases), "tags": [tag.name for tag in each.tags]}
            rows.append(build_row(DomainItem, each, domain=each.authority, **names))
        return Items(rows, rows[-1].domain if more else None)

    async def list_tags(self) -> Items[TagDocument]:
        """List the tags of domains, with their domains and settings."""
        return Items([describe_tag(each) for each in await tags.list_tags(self.db)], None)

    async def get_tag(self, *, tag: TagName) -> TagDocument:
        """Return a tag with its domains and settings."""
        return describe_tag(await tags.get_tag(self.db, tag))

    async def get_domain(self, *, domain: DomainName) -> DomainDocument:
        """Return a domain with its settings, its state, and why it is not being fetched now."""
        now, details = self.now(), await inspect_domain(self.db, domain)
        described: dict[str, Any] = describe_domain(details.domain)
        rule_documents = [RuleDocument(**rule) for rule in described["settings"].pop("rules")]
        wait = describe_wait(details.domain, details.wait, now=now)
        storage = build_row(StorageDocument, details.storage)
        return DomainDocument(**described, rules=rule_documents, status=details.status, wait=wait, storage=storage)

    async def list_rules(self, *, domain: DomainName) -> Items[RuleDocument]:
        """List the rules of a domain, in order."""
        found = await get_domain(self.db, domain)
        pages = await rules.count_limited_pages(self.db, found.id)
        described: list[dict[str, Any]] = [rules.describe_rule(rule) for rule in found.settings.rules]
        return Items([RuleDocument(**each, pages=pages.get(each["pattern"])) for each in described], None)

    async def explain_page(self, *, url: Annotated[str, build_text_query("Any URL.")]) -> dict[str, Any]:
        """Explain when and why a URL is fetched next, or why not, and how fresh its copy is."""
        return await explain_for_json(self.db, url)

    async def list_subscriptions(
        self,
        *,
        after: Annotated[int, NUMBER_CURSOR] = 0,
        limit: Annotated[int, build_limit_query(MAX_SUBSCRIPTIONS)] = 100,
    ) -> Items[SubscriptionState]:
        """List the subscriptions to notifications, with the state of their deliveries."""
        found, more = _cut(await notifications.list_subscriptions(self.db, after=after, max_count=limit + 1), limit)
        rows = [notifications.describe_subscription(self.db.settings, each) for each in found]
        return Items(rows, str(rows[-1].number) if more else None)

    async def get_subscription(self, *, number: Number) -> SubscriptionState:
        """Return a subscription with the state of its deliveries."""
        found = await notifications.find_subscription(self.db, number)
        return notifications.describe_subscription(self.db.settings, found)

    async def list_dead_letters(
        self,
        *,
        subscription: Annotated[
            int | None, Query(ge=1, le=MAX_CURSOR, description="The number of a subscription; all if omitted.")
        ] = None,
        after: Annotated[int, NUMBER_CURSOR] = 0,
        limit: Annotated[int, build_limit_query(MAX_LETTERS)] = 100,
    ) -> Items[DeadLetterDocument]:
        """List the messages that could not be delivered, oldest first."""
        found = await notifications.list_dead_letters(self.db, subscription, after=after, max_count=limit + 1)
        letters, more = _cut(found, limit)
        names = {"number": "id", "subscription": "subscription_id", "since": "created_at", "attempts": "tries"}
        rows = [{name: getattr(each, field) for name, field in names.items()} for each in letters]
        documents = [build_row(DeadLetterDocument, each, **row) for each, row in zip(letters, rows, strict=True)]
        return Items(documents, str(documents[-1].number) if more else None)

    async def list_changes(
        self,
        *,
        what: Annotated[str | None, build_text_query("A domain, a page, or a URL prefix.")] = None,
        after: Annotated[int, Query(ge=0, le=MAX_CURSOR, description="The cursor: only changes after it.")] = 0,
        since: Annotated[Instant | None, SINCE] = None,
        kind: Annotated[str | None, KIND] = None,
        q: Annotated[str, build_text_query("Parts of the URL or of what changed, all of which must occur.")] = "",
        tag: Annotated[str | None, TAG] = None,
        limit: Annotated[int, build_limit_query(MAX_CHANGES)] = 100,
    ) -> Items[FeedItem]:
        """List changes in the order of the feed. `next` is never null: store it and pass it as `after` next time."""
        scope_filter = await page_texts.make_target_filter(self.db, what) if what is not None else ChangeFilter()
        kinds = parse_kinds(kind) if kind is not None else ALL_KINDS
        tag_name = (await tags.get_tag(self.db, tag)).tag.name if tag is not None else None
        terms = {"after": after, "kinds": kinds, "since": since, "words": tuple(q.split()), "tag": tag_name}
        change_filter = replace(scope_filter, **terms)
        batch = await read_changes_within(self.db, change_filter, max_count=limit, max_chars=MAX_CHARS, at=self.now())
        return Items(batch.items, str(batch.next_cursor))  # also at the end, because more changes will follow

    async def list_pages(
        self,
        *,
        domain: Annotated[str, build_text_query("A registered domain.")],
        after: Annotated[str, Query(pattern="^([0-9a-f]{2})*$", description=CURSOR)] = "",
        content: Annotated[bool, Query(description="Include the content of each page.")] = False,
        limit: Annotated[int, build_limit_query(MAX_PAGES, f" With contents, at most {MAX_TEXTS}.")] = 100,
    ) -> Items[PageItem]:
        """List the fetched pages of a domain, in a fixed order."""
        count, max_chars = (min(limit, MAX_TEXTS), MAX_CHARS) if content else (limit, None)
        found, start = await get_domain(self.db, domain), PageKey(bytes.fromhex(after))
        pages, last = await page_texts.read_texts(self.db, found, after=start, max_count=count, max_chars=max_chars)
        rows = []
        for page in pages:
            digest = page.digest.hex() if page.digest is not None else None
            rows.append(build_row(PageItem, page, digest=digest, content=page.content if content else None))
        return Items(rows, last.hex() if last is not None else None)

    async def get_text(
        self,
        *,
        url: Annotated[str, PAGE],
        version: Annotated[int | None, Query(ge=1, le=MAX_VERSION, description="A version number.")] = None,
        at: Annotated[Instant | None, Query(description="The version that was current at this ISO 8601 time.")] = None,
    ) -> PageText:
        """Return the texts of a page: of its newest version, of a given version, or as it was at a given time."""
        page_url, content = await page_texts.find_text(self.db, url, number=version, at=at)
        if content is None:
            raise HTTPException(404, f"{page_url} has no such version")
        found = content.version
        if not found.is_stored:
            raise HTTPException(404, f"the text of version {found.number} of {page_url} is no longer stored")
        page: dict[str, Any] = {
            "url": content.url,
            "state": content.state,
            "text": content.text,
            "content": content.content,
        }
        page |= {"confidence": content.confidence, "metadata": content.metadata}
        return build_row(PageText, found, version=found.number, version_at=found.at, **page)

    async def list_versions(
        self,
        *,
        url: Annotated[str, PAGE],
        before: Annotated[int | None, Query(ge=1, le=MAX_VERSION, description=CURSOR)] = None,
        limit: Annotated[int, build_limit_query(MAX_VERSIONS)] = 100,
    ) -> Items[PageVersion]:
        """List the versions of a page, newest first."""
        page_versions, last = await page_texts.list_versions_before(self.db, url, before=before, max_count=limit)
        return Items(page_versions, str(last) if last is not None else None)

    async def list_values(
        self,
        *,
        url: Annotated[str, PAGE],
        name: Annotated[str, build_text_query("The name of a value; all if omitted.")] = "",
        before: Annotated[str, build_text_query(CURSOR)] = "",
        limit: Annotated[int, build_limit_query(MAX_READINGS)] = 100,
    ) -> Items[ValueReading]:
        """List the values that rules read from a page, such as a price: each change, newest first."""
        _, readings, last = await read_values(self.db, url, name=name, before=before, max_count=limit)
        return Items(readings, last)

    async def list_screenshots(self, *, url: Annotated[str, PAGE]) -> Items[Screenshot]:
        """List the stored screenshots of a page, newest first."""
        domain, page_url = await page_texts.resolve_page(self.db, url)
        return Items(await screenshots.list_screenshots(self.db, domain, page_url), None)

    async def get_picture(
        self,
        *,
        url: Annotated[str, PAGE],
        at: Annotated[Instant, Query(description="The time of the screenshot, as listed.")],
    ) -> Picture:
        """Return the picture of a screenshot."""
        domain, page_url = await page_texts.resolve_page(self.db, url)
        picture = await screenshots.read_picture(self.db, domain, page_url, at)
        return Picture("image/webp", b64encode(picture).decode())

    async def report_freshness(
        self,
        *,
        domain: Annotated[str | None, build_text_query("A registered domain; all domains if omitted.")] = None,
        after: Annotated[str, build_text_query(CURSOR)] = "",
        limit: Annotated[int, build_limit_query(MAX_REPORTS)] = 20,
    ) -> Items[DomainReport]:
        """Report the freshness of one or all domains, with the visits and traffic of the last week."""
        if domain is not None:
            selected = [await get_domain(self.db, domain)]
        else:
            all_domains = sorted(await find_domains(self.db, None, at=None), key=lambda each: each.authority)
            selected = [each for each in all_domains if each.authority > after]
        reports = await measure_freshness(self.db, selected[:limit], window=WEEK, at=self.now(), max_age=ANY_AGE)
        return Items(reports, selected[limit - 1].authority if len(selected) > limit else None)

    async def search(
        self,
        *,
        q: Annotated[str, build_text_query("Words that must all occur; a * at the end of a word matches any ending.")],
        domain: Annotated[str | None, build_text_query("Only pages of this domain.")] = None,
        limit: Annotated[int, build_limit_query(MAX_HITS)] = 10,
    ) -> Items[SearchHit]:
        """Find the parts of pages that contain words, best first. The index may be a minute old."""
        require_words(q)
        index_error = self.request_index()
        only = (await get_domain(self.db, domain)).authority if domain is not None else None
        hits = await search_index(self.home, q, domain=only, max_count=limit)
        if hits is None:
            why = f"could not be built ({index_error})" if index_error else "is being built"
            raise HTTPException(503, f"the search index {why}: try again later", {"retry-after": "5"})
        return Items(hits, None)
