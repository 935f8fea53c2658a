"""recrawl explain: what is compared of a page, and what its last change was."""

from dataclasses import dataclass
from datetime import timedelta

from crawler.core.change import diff_words, excerpt, explain_blocks, with_marks
from crawler.core.domain import Domain
from crawler.core.http import Fetched, key_of
from crawler.core.page_rules import PageRules
from crawler.engine import DomainParser, ParserPool
from crawler.format.values import format_count
from crawler.plugins import load
from crawler.settings import settings
from crawler.store import record, report
from crawler.store.database import Database
from crawler.store.learned import mask_of
from crawler.store.report import Edit, FeedItem, PageFacts

MOST_EDITS = 3  # of the last change
BESIDE, MOST_CHARS = 40, 160  # characters kept beside a change, and of a change itself


@dataclass(frozen=True, slots=True)
class ShownContent:
    """What is compared of a page's last version, and what its last change was.

    blocks: of the whole.  masked: of them, those of which nothing is compared.  words: masked in the others.
    """

    blocks: int
    masked: int
    words: int
    last_change: FeedItem | None


async def content_of(db: Database, domain: Domain, page: PageFacts) -> ShownContent | None:
    """None where the last version's body is not kept."""
    kept = await record.stored_body(db, domain.id, key_of(page.url), page.version, text_digest=b"")
    if kept is None:
        return None
    body = Fetched(200, kept.body, len(kept.body), timedelta(0), kept.content_type)
    async with ParserPool(1, few=1, plugins=load(settings().plugins)) as readers:
        parser = DomainParser(readers, PageRules(domain.settings.rules))
        whole, seen = await parser.whole_blocks(body, page.url), await parser.blocks(body, page.url)
    if whole is None or seen is None:
        return None
    mask = await mask_of(db, domain.id)
    pieces = explain_blocks(whole, seen, mask, view=parser.view(page.url))
    return ShownContent(
        blocks=len(pieces),
        masked=sum(piece.is_whole for piece in pieces),
        words=sum(len(piece.masked) for piece in pieces if not piece.is_whole),
        last_change=await report.last_of(db, domain, page.url),
    )


def shown_content(known: ShownContent | None) -> str:
    if known is None:
        return ""
    return (
        f"{format_count(known.blocks, 'block')}, but {known.masked} that are masked,"
        f" and {format_count(known.words, 'word')} in the others: recrawl try shows which"
    )


def shown_edits(known: ShownContent | None) -> str:
    """The words that its last change changed."""
    if known is None or known.last_change is None:
        return ""
    blocks = known.last_change.blocks
    first = "\n".join(map(_shown_edit, blocks[:MOST_EDITS]))
    more = len(blocks) - MOST_EDITS
    return first + (
        f"\nand {format_count(more, 'block')} more: recrawl diff {known.last_change.url}" if more > 0 else ""
    )


def _shown_edit(edit: Edit) -> str:
    runs = diff_words(edit.was or "", edit.now or "", part=edit.part)
    return f"{edit.part.value}: {with_marks(excerpt(runs, beside=BESIDE, most=MOST_CHARS))}"
