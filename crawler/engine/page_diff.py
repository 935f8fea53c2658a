"""Two stored versions of a page, read again and compared for people."""

from datetime import timedelta

from crawler.core.change.difference import difference, significant
from crawler.core.change.word_diff import PageDiff, diff_pages, diff_texts
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.page.outline import BlockList
from crawler.core.page.selectors import WHOLE
from crawler.core.page_rules import PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.store.database import Database
from crawler.store.learned.memories import mask_of
from crawler.store.report import VersionContent

CONTEXT = 1  # unchanged blocks beside a change


async def diff_versions(
    db: Database,
    domain: Domain,
    before: VersionContent,
    after: VersionContent,
    *,
    readers: ParserPool,
    context: int = CONTEXT,
) -> PageDiff:
    """The difference between two versions of a page, block by block and word by word.

    All that differs is told; what the domain's noise mask or a rule of its user hides is marked as no news. Where a
    body is not kept or cannot be read, the main texts are compared line by line.
    """
    parser = DomainParser(readers, PageRules(domain.settings.rules))
    was, now = await _blocks(parser, before, whole=True), await _blocks(parser, after, whole=True)
    if not was or not now:
        return diff_texts(before.text, after.text, context=context)
    seen_before, seen_after = await _blocks(parser, before, whole=False), await _blocks(parser, after, whole=False)
    mask = await mask_of(db, domain.id)
    found = difference(seen_before, seen_after, mask.volatile)
    own = significant(found, mask, then=before.version.at, now=after.version.at)
    return diff_pages(was, now, context=context, news=own.blocks)


async def _blocks(parser: DomainParser, version: VersionContent, *, whole: bool) -> BlockList:
    """The blocks of a version that say something; none where its body is not kept or cannot be read."""
    if version.body is None:
        return ()
    answer = Fetched(
        status=200,
        body=version.body,
        received_bytes=len(version.body),
        elapsed=timedelta(0),
        content_type=version.version.content_type,
    )
    blocks = await parser.blocks(answer, version.url, view=WHOLE if whole else None)
    return tuple(block for block in blocks or () if block.text)
