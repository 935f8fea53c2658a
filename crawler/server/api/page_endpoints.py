"""The endpoints of the API that list the pages of a domain and compare their versions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query

from crawler.app import page_list, pages
from crawler.app.page_list import PageCategory, PageOrder, PageQuery
from crawler.app.pages import BlockKind, BlockStatus, PageVersion, RunKind, Url
from crawler.app.registration import get_domain
from crawler.server.api.endpoints import (
    CURSOR,
    MAX_VERSION,
    PAGE,
    Api,
    DomainName,
    build_limit_query,
    build_row,
    build_text_query,
)

MAX_LISTED, MAX_CONTEXT = 200, 1000


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page in a list. category: its state as reports count it.  freshness: the probability that its copy is current.

    importance: relative to the domain's mean of 1, or null.  rate_per_day: the estimated number of changes a day.
    due_at: when it is visited next, or null.  status, reason: of the last visit.  failures: consecutive failed visits.
    request_reason: why the next visit is made at any price, such as by_user, or null.
    is_duplicate: it shares the schedule of another page.  version: the number of its newest version, or 0.
    """

    url: Url
    title: str
    category: PageCategory
    importance: float | None
    freshness: float | None
    rate_per_day: float
    last_visit_at: datetime | None
    due_at: datetime | None
    request_reason: str | None
    status: int | None
    reason: str
    failures: int
    last_good_at: datetime | None
    version: int
    is_duplicate: bool


@dataclass(frozen=True, slots=True)
class PageListDocument:
    """A part of a list of pages. next: the cursor of the next part; null at the end.

    sort: the order of the list, which in a large domain may be another than requested.
    matches: the number of pages in all parts, or null if they were not counted.
    is_limited: the list has only the most important pages, or the first matches, of a large domain.
    """

    items: Sequence[ListedPage]
    next: str | None
    sort: PageOrder
    matches: int | None
    is_limited: bool


@dataclass(frozen=True, slots=True)
class WordRunDocument:
    """Consecutive words that were kept, removed (old) or added (new)."""

    kind: RunKind
    text: str


@dataclass(frozen=True, slots=True)
class BlockDiffDocument:
    """A block of a difference. is_news: the change is significant; false for known noise and unchanged blocks.

    was_at, is_at: the index of the block in each version; null if the version lacks it.
    """

    status: BlockStatus
    kind: BlockKind
    runs: Sequence[WordRunDocument]
    was_at: int | None
    is_at: int | None
    is_news: bool


@dataclass(frozen=True, slots=True)
class HunkDocument:
    """Changed blocks close together. skipped: the number of unchanged blocks before them that are left out."""

    skipped: int
    blocks: Sequence[BlockDiffDocument]


@dataclass(frozen=True, slots=True)
class DiffDocument:
    """The differences between two versions of a page, as hunks of blocks.

    skipped: the number of unchanged blocks after the last hunk.  counts: the number of blocks by status.
    """

    url: Url
    before: PageVersion
    after: PageVersion
    hunks: Sequence[HunkDocument]
    skipped: int
    counts: dict[BlockStatus, int]


@dataclass(frozen=True, slots=True)
class PageApi(Api):
    """The endpoints that read pages of a domain."""

    async def list_domain_pages(
        self,
        *,
        domain: DomainName,
        state: Annotated[str, build_text_query(f"One of {', '.join(page_list.LISTS)}.")] = page_list.ALL,
        sort: Annotated[PageOrder, Query(description="The order of the list.")] = PageOrder.IMPORTANCE,
        q: Annotated[str, build_text_query("Parts of the URL or title, all of which must occur.")] = "",
        after: Annotated[str, build_text_query(CURSOR)] = "",
        limit: Annotated[int, build_limit_query(MAX_LISTED)] = 100,
    ) -> PageListDocument:
        """List the pages of a domain by state, words and order, with their last and next visits."""
        found, query = await get_domain(self.db, domain), PageQuery(state, sort, tuple(q.split()), after)
        part = await page_list.list_domain_pages(self.db, found, query, max_count=limit, at=self.now())
        rows = [
            build_row(
                ListedPage, each, request_reason=each.request_reason.name.lower() if each.request_reason else None
            )
            for each in part.pages
        ]
        return PageListDocument(rows, part.more or None, part.order, part.matches, part.is_limited)

    async def compare_versions(
        self,
        *,
        url: Annotated[str, PAGE],
        before: Annotated[
            int | None, Query(ge=1, le=MAX_VERSION, description="The older version; the one before `after` if omitted.")
        ] = None,
        after: Annotated[
            int | None, Query(ge=1, le=MAX_VERSION, description="The newer version; the newest if omitted.")
        ] = None,
        context: Annotated[int, Query(ge=0, le=MAX_CONTEXT, description="Unchanged blocks around each change.")] = 1,
    ) -> DiffDocument:
        """Compare two versions of a page block by block and word by word. `version` of a change is its `after`."""
        compared = await pages.compare_versions(
            self.db, url, before=before, after=after, context=context, now=self.now()
        )
        hunks = [HunkDocument(each.skipped, list(map(_build_block, each.blocks))) for each in compared.diff.hunks]
        sides: dict[str, Any] = {"before": compared.before.version, "after": compared.after.version}
        return build_row(DiffDocument, compared.diff, url=compared.after.url, hunks=hunks, **sides)


def _build_block(block: pages.BlockDiff) -> BlockDiffDocument:
    return build_row(BlockDiffDocument, block, runs=[build_row(WordRunDocument, each) for each in block.runs])
