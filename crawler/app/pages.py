"""Pages of domains: look them up, list them, compare their versions, and find near duplicates."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from crawler.app.database import AppDatabase
from crawler.app.registration import find_domains, get_domain, make_scope, parse_typed_url, require_after_last_visit
from crawler.core.change.word_diff import BlockDiff, BlockStatus, PageDiff, RunKind, WordRun, format_runs
from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url, compute_page_key, get_authority, get_path_and_query
from crawler.core.opic.order import Order
from crawler.core.page.block import BlockKind
from crawler.core.visit.state import NEVER, PageCategory, State
from crawler.errors import BadInput, NotStored
from crawler.format.values import format_when
from crawler.plugins import load_plugins
from crawler.store import domains, report
from crawler.store.report import NearDuplicate, NearDuplicateGroup, PageLine, PageVersion, PastPage, VersionContent
from crawler.times import format_instant

if TYPE_CHECKING:  # reads bodies, for which few commands have use
    from crawler.engine.parsing.parser_pool import ParserPool

# A version number, a duration before now, or a time; None for the newest version.
VersionSelector = int | timedelta | datetime | None
FAILED = "failed"  # not a page state: pages of any state whose last visit had no usable response
STATES = (*(each.value for each in PageCategory), FAILED)


async def resolve_page(db: AppDatabase, text: str) -> tuple[Domain, Url]:
    """Return the registered domain of a URL, and the URL as that domain spells it. Raises BadInput."""
    url = parse_typed_url(text)
    domain = await get_domain(db, get_authority(url))
    return domain, make_scope(domain, domain.settings).to_domain_url(url)


async def make_target_filter(db: AppDatabase, text: str) -> report.ChangeFilter:
    """Return the filter for changes of the domain or URL that a user typed. Raises BadInput.

    A URL with stored versions selects this page; any other URL is a prefix.
    """
    domain, url = await resolve_page(db, text)
    if url == domain.root:
        return report.ChangeFilter(domain_id=domain.id)
    if await report.list_versions(db, domain, url, max_count=1):
        return report.ChangeFilter(domain_id=domain.id, key=compute_page_key(url))
    return report.ChangeFilter(domain_id=domain.id, prefix=url)


async def read_version(
    db: AppDatabase, domain: Domain, url: Url, selector: VersionSelector, *, now: datetime
) -> VersionContent:
    """Return the selected version of a page. Raises NotStored if it does not exist or is no longer stored."""
    number = selector if isinstance(selector, int) else None
    at = now - selector if isinstance(selector, timedelta) else selector if isinstance(selector, datetime) else None
    content = await report.read_version(db, domain, url, number=number, at=at)
    if content is not None and content.version.is_stored:
        return content
    if content is not None:
        raise NotStored(
            f"the text of version {content.version.number} of {url}, of {format_instant(content.version.at)}, "
            f"is no longer stored (--keep-versions); to see which are: recrawl versions {url}"
        )
    newest = await report.list_versions(db, domain, url, max_count=1)
    if not newest:
        raise NotStored(f"no version of {url} is stored; for the reason: recrawl explain {url}")
    if number is not None and 0 < number < newest[0].number:
        raise NotStored(f"version {number} of {url} was deleted (--keep-changes): recrawl versions {url}")
    if number is not None:
        raise BadInput(f"{url} has no version {number}; its newest is {newest[0].number}: recrawl versions {url}")
    first = await report.read_version(db, domain, url, number=1)
    first_seen = f"; it was first fetched at {format_instant(first.version.at)}" if first else ""
    raise NotStored(f"{url} had no version at {format_instant(at or datetime.now(UTC))}{first_seen}")


async def list_versions(db: AppDatabase, text: str, *, max_count: int, now: datetime) -> tuple[Url, list[PageVersion]]:
    """Return the versions of a page, newest first. Raises NotStored if none is stored."""
    domain, url = await resolve_page(db, text)
    await read_version(db, domain, url, None, now=now)
    return url, await report.list_versions(db, domain, url, max_count=max_count)


async def find_version(db: AppDatabase, text: str, selector: VersionSelector, *, now: datetime) -> VersionContent:
    """Return a version of the page that a user typed. Raises NotStored if there is none."""
    domain, url = await resolve_page(db, text)
    return await read_version(db, domain, url, selector, now=now)


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """Two versions of a page and their differences."""

    domain: Domain
    before: VersionContent
    after: VersionContent
    diff: PageDiff


async def compare_versions(
    db: AppDatabase, text: str, *, before: VersionSelector, after: VersionSelector, context: int, now: datetime
) -> VersionDiff:
    """Compare two versions of a page, block by block and word by word.

    before: None for the version before `after`.  context: the number of unchanged blocks around a change.
    Raises NotStored if there is only one version, or the text of one of the two is not stored.
    """
    from crawler.engine.page_diff import diff_versions
    from crawler.engine.parsing.parser_pool import ParserPool

    domain, url = await resolve_page(db, text)
    new = await read_version(db, domain, url, after, now=now)
    if before is None and new.version.number == 1:
        raise NotStored(
            f"{url} has only one version{' up to then' if after is not None else ''}, of "
            f"{format_when(new.version.at, now=now)}, so there is nothing to compare: recrawl show {url}"
        )
    old = await read_version(db, domain, url, new.version.number - 1 if before is None else before, now=now)
    async with ParserPool(1, plugins=load_plugins(db.settings.plugins)) as parsers:
        diff = await diff_versions(db, domain, old, new, parsers=parsers, context=context)
        return VersionDiff(domain, old, new, diff)


@dataclass(frozen=True, slots=True)
class VersionsQuery:
    """The versions to compare and list.

    before, after: version numbers. 0 in `before` means the version before `after`; 0 in `after`, the newest version.
    older_than: list only versions with lower numbers; None for all.
    context: the number of unchanged blocks around a change.
    """

    before: int = 0
    after: int = 0
    older_than: int | None = None
    context: int = 1


@dataclass(frozen=True, slots=True)
class PageHistory:
    """The versions of a page.

    more: the number of the last listed version if there are older ones, else 0.
    content: the selected version; None if it does not exist.  compared: its differences from another version; None
    without another, or if the text of one of them is not stored.
    """

    versions: tuple[PageVersion, ...]
    more: int
    content: VersionContent | None
    compared: VersionDiff | None


async def read_history(
    db: AppDatabase, domain: Domain, url: Url, query: VersionsQuery, *, max_count: int, parsers: "ParserPool"
) -> PageHistory:
    """Return the versions of a page, newest first, with the content of one and its differences from another."""
    versions = await report.list_versions(db, domain, url, max_count=max_count + 1, before=query.older_than)
    more = versions[max_count - 1].number if len(versions) > max_count else 0
    content = await report.read_version(db, domain, url, number=query.after or None)
    compared = await compare_with(db, domain, content, query, parsers=parsers) if content else None
    return PageHistory(tuple(versions[:max_count]), more, content, compared)


async def compare_with(
    db: AppDatabase, domain: Domain, after: VersionContent, query: VersionsQuery, *, parsers: "ParserPool"
) -> VersionDiff | None:
    """Compare a version with the one that a query names. Return None if not possible."""
    if after.version.number < 2:
        return None
    before = await report.read_version(db, domain, after.url, number=query.before or after.version.number - 1)
    if before is None or not (before.version.is_stored and after.version.is_stored):  # its text was deleted
        return None
    if before.version.number > after.version.number:
        before, after = after, before
    from crawler.engine.page_diff import diff_versions

    diff = await diff_versions(db, domain, before, after, parsers=parsers, context=query.context)
    return VersionDiff(domain, before, after, diff)


@dataclass(frozen=True, slots=True)
class PageListing:
    """Pages of some domains. past: the pages of one domain at a time before its last visit; None for now."""

    domains: list[Domain]
    pages: list[PageLine]
    past: list[PastPage] | None = None


async def list_pages(
    db: AppDatabase, text: str | None, *, state: str | None, max_count: int, at: datetime | None, now: datetime
) -> PageListing:
    """List the most important pages of a domain, or of all domains.

    state: one of STATES; None for all.  at: act as if it were this time; None for now. For one domain without `state`,
    a time before its last visit lists the pages as they were then; otherwise, it raises BadInput.
    Raises BadInput.
    """
    if state is not None and state not in STATES:
        raise BadInput(f"{state!r} is not a page state: use one of {', '.join(STATES)}")
    if text is None and state is None:
        raise BadInput("no domain is given: recrawl pages DOMAIN, or use --state to list pages of all domains")
    selected = await find_domains(db, text or None)
    if at is not None and text and state is None:
        last = (await domains.read_status(db, selected[0], at=at)).last_visit_at
        if last is not None and at < last:
            return PageListing(selected, [], await report.list_pages_at(db, selected[0], at=at, max_count=max_count))
    if at is not None:
        await require_after_last_visit(db, selected, at)
    which = report.FAILING if state == FAILED else state or report.ALL
    listed: list[PageLine] = []
    for domain in selected:
        listed += await report.list_top_pages(db, domain, top=max_count, at=at or now, ranking=which)
    if len(selected) > 1:
        listed.sort(key=lambda page: -(page.importance or -1))
    return PageListing(selected, listed[:max_count])


def explain_missing_duplicates(url: Url) -> str:
    """Return why `list_page_duplicates` returned None for a page."""
    from crawler.core.change.near_duplicates import MIN_TEXT_BYTES

    return f"{url} was not compared: it is not fetched, or has less than {MIN_TEXT_BYTES} bytes of main text"


async def list_duplicates(
    db: AppDatabase, text: str | None, *, max_bits: int, max_count: int, max_members: int
) -> list[NearDuplicateGroup]:
    """Return groups of near-duplicate pages, largest first, up to max_count + 1 per domain.

    text: a domain; None for all.  max_bits: how many of the 64 SimHash bits may differ.
    max_members: the number of pages returned per group.
    """
    groups: list[NearDuplicateGroup] = []
    for domain in await find_domains(db, text):
        await report.fill_fingerprints(db, domain)
        limits = {"bits": max_bits, "max_groups": max_count + 1, "max_members": max_members}
        groups += await report.find_near_duplicate_groups(db, domain, **limits)
    return sorted(groups, key=lambda group: -group.pages)


async def list_page_duplicates(
    db: AppDatabase, text: str, *, max_bits: int, max_count: int
) -> tuple[Url, list[NearDuplicate] | None]:
    """Return the near duplicates of a page, up to max_count + 1; None if it is not fetched or its text is short."""
    domain, url = await resolve_page(db, text)
    key = compute_page_key(url)
    await report.fill_fingerprints(db, domain)
    return url, await report.find_near_duplicates(db, domain, key, bits=max_bits, max_pages=max_count + 1)


async def read_texts(
    db: AppDatabase, domain: Domain, *, after: PageKey, max_count: int, max_chars: int | None
) -> tuple[list[report.ExportedPage], PageKey | None]:
    """Return the fetched pages after a key, each with its newest text, and the key for the next call (None at the end).

    max_chars: the limit of all texts together, which the first page may exceed; None for no limit.
    """
    batch = await report.read_pages_to_export(db, domain, after=after, max_count=max_count)
    chars, shown = 0, 0
    for page in batch:
        chars += len(page.content)
        if shown and max_chars is not None and chars > max_chars:
            break
        shown += 1
    is_last = shown == len(batch) < max_count
    return list(batch[:shown]), None if is_last or not batch else batch[shown - 1].key


async def find_text(
    db: AppDatabase, text: str, *, number: int | None = None, at: datetime | None = None
) -> tuple[Url, VersionContent | None]:
    """Return the URL as its domain spells it, and the newest version or that of a number or time. Raises BadInput."""
    domain, url = await resolve_page(db, text)
    return url, await report.read_version(db, domain, url, number=number, at=at)


async def list_versions_before(
    db: AppDatabase, text: str, *, before: int | None, max_count: int
) -> tuple[list[PageVersion], int | None]:
    """Return versions of a page, newest first, and the value of `before` for the next call; None at the end."""
    domain, url = await resolve_page(db, text)
    versions = await report.list_versions(db, domain, url, max_count=max_count, before=before)
    last = versions[-1].number if len(versions) == max_count else 1
    return versions, last if last > 1 else None
