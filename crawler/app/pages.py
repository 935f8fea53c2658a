"""Pages of domains: found by what a user typed, listed, their versions compared, and their duplicates."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.database import AppDatabase
from crawler.app.registration import (
    find_domains,
    get_domain,
    make_scope,
    parse_typed_url,
    require_not_before_last_visit,
)
from crawler.core.change.near_duplicates import MIN_TEXT_BYTES
from crawler.core.change.word_diff import BlockDiff, BlockStatus, PageDiff, RunKind, WordRun, format_runs
from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url, compute_page_key, get_authority, get_path_and_query
from crawler.core.opic.order import Order
from crawler.core.page.outline import BlockKind
from crawler.core.visit.visit import NEVER, PageCategory, State
from crawler.engine.page_diff import diff_versions
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.errors import BadInput, CrawlerError
from crawler.format.values import format_when
from crawler.plugins import load_plugins
from crawler.store import domains, report
from crawler.store.report import (
    ChangeFilter,
    ExportedPage,
    NearDuplicate,
    NearDuplicateGroup,
    PageLine,
    PageVersion,
    PastPage,
    VersionContent,
)
from crawler.times import format_instant

# a number, the one of so long ago or of an instant; None: the newest
VersionSelector = int | timedelta | datetime | None
FAILED = "failed"  # no state of its own: whatever the page is, its newest visit brought no good response
STATES = (*(each.value for each in PageCategory), FAILED)


async def resolve_page(db: AppDatabase, text: str) -> tuple[Domain, Url]:
    """Return the registered domain of a URL, and the URL as that domain spells it. Raises BadInput."""
    url = parse_typed_url(text)
    domain = await get_domain(db, get_authority(url))
    return domain, make_scope(domain, domain.settings).to_domain_url(url)


async def make_target_filter(db: AppDatabase, text: str) -> ChangeFilter:
    """Return the filter for the changes of a domain, of one page, or of all pages beneath a URL that is no page.

    Raises BadInput.
    """
    domain, url = await resolve_page(db, text)
    if url == domain.root:
        return ChangeFilter(domain_id=domain.id)
    if await report.list_versions(db, domain, url, max_count=1):
        return ChangeFilter(domain_id=domain.id, key=compute_page_key(url))
    return ChangeFilter(domain_id=domain.id, prefix=url)


async def read_version(
    db: AppDatabase, domain: Domain, url: Url, selector: VersionSelector, *, now: datetime
) -> VersionContent:
    """Return the version that `wanted` names. Raises CrawlerError if there is none."""
    number = selector if isinstance(selector, int) else None
    at = now - selector if isinstance(selector, timedelta) else selector if isinstance(selector, datetime) else None
    content = await report.read_version(db, domain, url, number=number, at=at)
    if content is not None and not content.version.is_stored:
        raise CrawlerError(
            f"version {content.version.number} of {url}, of {format_instant(content.version.at)}, "
            f"was thinned out: its text"
            f" is not kept (--keep-versions); recrawl versions {url} tells of which it is"
        )
    if content is not None:
        return content
    newest = await report.list_versions(db, domain, url, max_count=1)
    if not newest:
        raise CrawlerError(f"no version of {url} is kept: recrawl explain {url} says why")
    if number is not None and 0 < number < newest[0].number:
        raise CrawlerError(f"version {number} of {url} is forgotten (--keep-changes): recrawl versions {url}")
    if number is not None:
        raise BadInput(f"{url} has no version {number}; its newest is {newest[0].number}: recrawl versions {url}")
    first = await report.read_version(db, domain, url, number=1)
    first_seen = f"; it was first seen at {format_instant(first.version.at)}" if first else ""
    raise CrawlerError(f"nothing is known of {url} at {format_instant(at or datetime.now(UTC))}{first_seen}")


async def list_versions(db: AppDatabase, text: str, *, max_count: int, now: datetime) -> tuple[Url, list[PageVersion]]:
    """Return the versions of a page, the newest first. Raises CrawlerError, with the reason, if none is kept."""
    domain, url = await resolve_page(db, text)
    await read_version(db, domain, url, None, now=now)
    return url, await report.list_versions(db, domain, url, max_count=max_count)


async def find_version(db: AppDatabase, text: str, selector: VersionSelector, *, now: datetime) -> VersionContent:
    """Return a version of the page that a user typed. Raises CrawlerError if there is none."""
    domain, url = await resolve_page(db, text)
    return await read_version(db, domain, url, selector, now=now)


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """Two versions of a page of a domain and what differs between them."""

    domain: Domain
    before: VersionContent
    after: VersionContent
    diff: PageDiff


async def compare_versions(
    db: AppDatabase, text: str, *, before: VersionSelector, after: VersionSelector, context: int, now: datetime
) -> VersionDiff:
    """Compare two versions of a page, block by block and word by word.

    before: None for the version before the other one.  context: unchanged blocks beside a change.
    Raises CrawlerError if one of them is not kept.
    """
    domain, url = await resolve_page(db, text)
    new = await read_version(db, domain, url, after, now=now)
    if before is None and new.version.number == 1:
        raise CrawlerError(
            f"{url} has one version{' until then' if after is not None else ''}, seen first "
            f"{format_when(new.version.at, now=now)}, and nothing to compare it with: recrawl show {url}"
        )
    old = await read_version(db, domain, url, new.version.number - 1 if before is None else before, now=now)
    async with ParserPool(1, inline_bodies=2, plugins=load_plugins(db.settings.plugins)) as parsers:
        return VersionDiff(
            domain, old, new, await diff_versions(db, domain, old, new, parsers=parsers, context=context)
        )


@dataclass(frozen=True, slots=True)
class VersionsQuery:
    """Which versions are to be compared, 0 for the newest and the one before it; and from which on they are listed."""

    before: int = 0
    after: int = 0
    older_than: int | None = None


@dataclass(frozen=True, slots=True)
class PageHistory:
    """The versions of a page. more: the number of the last one listed, if there are older ones; else 0.

    content: of the version that was asked for.  compared: None if there are no two versions whose bodies are kept.
    """

    versions: tuple[PageVersion, ...]
    more: int
    content: VersionContent | None
    compared: VersionDiff | None


async def read_history(
    db: AppDatabase, domain: Domain, url: Url, query: VersionsQuery, *, max_count: int, parsers: ParserPool
) -> PageHistory:
    """Return the versions of a page, the newest first, with the content of one and what differs from another."""
    versions = await report.list_versions(db, domain, url, max_count=max_count + 1, before=query.older_than)
    content = await report.read_version(db, domain, url, number=query.after or None)
    return PageHistory(
        versions=tuple(versions[:max_count]),
        more=versions[max_count - 1].number if len(versions) > max_count else 0,
        content=content,
        compared=await _compare(db, domain, content, query.before, parsers=parsers) if content else None,
    )


async def _compare(
    db: AppDatabase, domain: Domain, after: VersionContent, number: int, *, parsers: ParserPool
) -> VersionDiff | None:
    """Compare a version with the one of a number; 0: with the one before it."""
    if after.version.number < 2:
        return None
    before = await report.read_version(db, domain, after.url, number=number or after.version.number - 1)
    if before is None:
        return None
    if before.version.number > after.version.number:
        before, after = after, before
    if not (before.version.is_stored and after.version.is_stored):  # thinned out: there is nothing to compare
        return None
    return VersionDiff(domain, before, after, await diff_versions(db, domain, before, after, parsers=parsers))


@dataclass(frozen=True, slots=True)
class PageListing:
    """Pages of some domains. past: of the one domain as it was at an instant before its last visit; None for now."""

    domains: list[Domain]
    pages: list[PageLine]
    past: list[PastPage] | None = None


async def list_pages(
    db: AppDatabase, text: str | None, *, state: str | None, max_count: int, at: datetime | None, now: datetime
) -> PageListing:
    """List the most important pages of a domain, or of all domains.

    state: one of STATES, or None for all.  at: as they were, or as if it were then; None for now.  Raises BadInput.
    """
    if state is not None and state not in STATES:
        raise BadInput(f"{state!r} is no state of a page; there are {', '.join(STATES)}")
    if text is None and state is None:
        raise BadInput("pages of which domain? recrawl pages DOMAIN, or --state for those of all domains")
    selected = await find_domains(db, text or None)
    if at is not None and text and state is None:
        last = (await domains.read_status(db, selected[0], at=at)).last_visit_at
        if last is not None and at < last:
            return PageListing(selected, [], await report.list_pages_at(db, selected[0], at=at, max_count=max_count))
    if at is not None:
        await require_not_before_last_visit(db, selected, at)
    which = report.FAILING if state == FAILED else state or report.ALL
    listed: list[PageLine] = []
    for domain in selected:
        listed += await report.list_top_pages(db, domain, top=max_count, at=at or now, ranking=which)
    if len(selected) > 1:
        listed.sort(key=lambda page: -(page.importance or -1))
    return PageListing(selected, listed[:max_count])


async def list_duplicates(
    db: AppDatabase, text: str | None, *, max_bits: int, max_count: int, max_members: int
) -> list[NearDuplicateGroup]:
    """Return groups of pages whose main texts are nearly the same, the largest first; one more than max_count.

    text: a domain; None for all.  max_bits: in which fingerprints may differ.  max_members: pages named of each group.
    """
    groups: list[NearDuplicateGroup] = []
    for domain in await find_domains(db, text):
        await report.fill_fingerprints(db, domain)
        groups += await report.find_near_duplicate_groups(
            db, domain, bits=max_bits, max_groups=max_count + 1, max_members=max_members
        )
    return sorted(groups, key=lambda group: -group.pages)


async def list_page_duplicates(
    db: AppDatabase, text: str, *, max_bits: int, max_count: int
) -> tuple[Url, list[NearDuplicate] | None]:
    """Return the pages that are nearly the same as one page, one more than max_count; None if it is not compared."""
    domain, url = await resolve_page(db, text)
    await report.fill_fingerprints(db, domain)
    return url, await report.find_near_duplicates(
        db, domain, compute_page_key(url), bits=max_bits, max_pages=max_count + 1
    )


async def read_texts(
    db: AppDatabase, domain: Domain, *, after: PageKey, max_count: int, max_chars: int | None
) -> tuple[list[ExportedPage], PageKey | None]:
    """Return the pages behind a key that are there, each with its newest text, and the key to go on from.

    max_chars: of the texts together, None without a bound; the first page is returned whatever its length.  The key is
    None at the end.
    """
    batch = await report.read_pages_to_export(db, domain, after=after, max_count=max_count)
    chars, shown = 0, 0
    for page in batch:
        chars += len(page.text)
        if shown and max_chars is not None and chars > max_chars:
            break
        shown += 1
    is_last = shown == len(batch) < max_count
    return list(batch[:shown]), None if is_last or not batch else batch[shown - 1].key


async def find_text(
    db: AppDatabase, text: str, *, number: int | None = None, at: datetime | None = None
) -> tuple[Url, VersionContent | None]:
    """Return the URL as its domain spells it, and the newest version, the one of a number, or the newest at an instant.

    Raises BadInput for a domain that is not registered.
    """
    domain, url = await resolve_page(db, text)
    return url, await report.read_version(db, domain, url, number=number, at=at)


async def list_versions_before(
    db: AppDatabase, text: str, *, before: int | None, max_count: int
) -> tuple[list[PageVersion], int | None]:
    """Return versions of a page, the newest first, and the number before which to go on; None at the end."""
    domain, url = await resolve_page(db, text)
    versions = await report.list_versions(db, domain, url, max_count=max_count, before=before)
    last = versions[-1].number if len(versions) == max_count else 1
    return versions, last if last > 1 else None
