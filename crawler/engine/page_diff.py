"""Compare two stored versions of a page for display."""

from datetime import timedelta

from crawler.core.change.difference import compute_difference, select_significant
from crawler.core.change.word_diff import PageDiff, diff_pages, diff_texts
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.page.block import BlockList
from crawler.core.page.selectors import FULL_VIEW, View
from crawler.core.page_rules import PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.store.database import Database
from crawler.store.learned.domain_memory import read_mask
from crawler.store.report import VersionContent

CONTEXT = 1  # unchanged blocks that are included before and after each change


async def diff_versions(
    db: Database,
    domain: Domain,
    before: VersionContent,
    after: VersionContent,
    *,
    parsers: ParserPool,
    context: int = CONTEXT,
) -> PageDiff:
    """Return the difference between two versions of a page, block by block and word by word.

    All differences are included; those hidden by the domain's noise mask or by a user's rule are marked as
    insignificant. If a body is not stored or cannot be parsed, the main texts are compared line by line.
    """
    parser = DomainParser(parsers, PageRules(domain.settings.rules))
    old_blocks, new_blocks = [await _parse_blocks(parser, each, view=FULL_VIEW) for each in (before, after)]
    if not old_blocks or not new_blocks:
        return diff_texts(before.text, after.text, context=context)
    old_visible, new_visible = [await _parse_blocks(parser, each) for each in (before, after)]
    mask = await read_mask(db, domain.id)
    raw_difference = compute_difference(old_visible, new_visible, mask.volatile)
    significant_difference = select_significant(raw_difference, mask, then=before.version.at, now=after.version.at)
    return diff_pages(old_blocks, new_blocks, context=context, significant_blocks=significant_difference.blocks)


async def _parse_blocks(parser: DomainParser, version: VersionContent, *, view: View | None = None) -> BlockList:
    """Return the non-empty blocks of a version; none if its body is not stored or cannot be parsed."""
    body, content_type = version.body, version.version.content_type
    if body is None:
        return ()
    response = Fetched(200, body, received_bytes=len(body), elapsed=timedelta(0), content_type=content_type)
    blocks = await parser.parse_blocks(response, version.url, view=view)
    return tuple(block for block in blocks or () if block.text)
