"""List which blocks of a page are compared, and preview a rule made from a block that the user picked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from crawler.app.database import AppDatabase
from crawler.app.rules import make_page_pattern, make_rule, merge_rule
from crawler.core.change.change import MaskReason
from crawler.core.change.explain import ExplainedBlock, explain_blocks
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.selector_finder import find_selector
from crawler.core.page.selectors import FULL_VIEW, View, merge_views
from crawler.core.page_rules import PageRule, PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.errors import BadInput
from crawler.format.values import REPLACEMENT, sanitize_text
from crawler.store import report
from crawler.store.learned.domain_memory import read_mask
from crawler.store.report import VersionContent

MAX_EXPRESSION_CHARS = 300  # longer block texts are truncated before an expression is made of them
ALL_PAGES = "/"  # the pattern of all pages of a domain


class PickAction(StrEnum):
    """What the rule does with the picked block."""

    IGNORE_TEXT = "ignore_text"
    IGNORE = "ignore"
    WATCH = "watch"
    VALUES = "values"  # read its number as a value; only its selector is suggested (crawler/app/page_values.py)


@dataclass(frozen=True, slots=True)
class BlockPickRequest:
    """A picked block. block: its number on the page, from 1; 0 for none.

    text: the expression or selector as edited by the user; empty for the suggested one.
    pattern: the pattern of the pages to which the rule applies.
    """

    block: int = 0
    action: PickAction = PickAction.IGNORE_TEXT
    text: str = ""
    pattern: str = ALL_PAGES


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """The blocks of a page under the current rules, and under a rule that is not saved yet.

    text: the expression or selector of the picked block; empty without one.  preview: the blocks under that rule.
    why_not: why no rule can be made from the picked block; empty if one can, or if no block was picked.
    """

    url: Url
    domain: Domain
    content: VersionContent
    request: BlockPickRequest
    blocks: tuple[ExplainedBlock, ...]
    text: str = ""
    preview: tuple[ExplainedBlock, ...] = ()
    why_not: str = ""

    @property
    def newly_ignored(self) -> int:
        """Return how many more blocks are ignored with the new rule; negative if fewer are."""
        return sum(_is_ignored(block) for block in self.preview) - sum(_is_ignored(block) for block in self.blocks)

    @property
    def page_pattern(self) -> str:
        """Return the pattern that matches only this page."""
        return make_page_pattern(self.url)


async def read_blocks(
    db: AppDatabase, domain: Domain, url: Url, request: BlockPickRequest, *, parsers: ParserPool
) -> BlockFacts | None:
    """Return the blocks of a page's last version, and the preview of a rule; None if no body is stored."""
    content = await report.read_version(db, domain, url)
    if content is None or content.body is None:
        return None
    rules = domain.settings.rules
    blocks = await _explain_version(db, domain, content, rules, parsers=parsers)
    facts = BlockFacts(url=url, domain=domain, content=content, request=request, blocks=tuple(blocks))
    if not 0 < request.block <= len(blocks):
        return facts
    expression = request.text or suggest_expression(content, blocks[request.block - 1].text, request.action)
    if not expression:
        return replace(facts, why_not="no selector identifies this block alone: ignore its text instead")
    if request.action is PickAction.VALUES:
        return replace(facts, text=expression)
    try:
        rule = make_pick_rule(rules, replace(request, text=expression))
    except BadInput as error:
        return replace(facts, text=expression, why_not=str(error))
    preview = await _explain_version(db, domain, content, merge_rule(rules, rule), parsers=parsers)
    return replace(facts, text=expression, preview=tuple(preview))


def make_pick_rule(rules: Sequence[PageRule], request: BlockPickRequest) -> PageRule:
    """Return the existing or new rule of the request's pattern, extended by the picked block. Raises BadInput."""
    before = next((rule for rule in rules if rule.pattern == request.pattern), None)

    def build_rule() -> PageRule:
        view = View(**{request.action.value: (request.text,)})
        if before is None:
            return PageRule(request.pattern, view=view)
        return replace(before, view=merge_views([before.view or FULL_VIEW, view]))

    return make_rule(build_rule)


def suggest_expression(content: VersionContent, text: str, action: PickAction) -> str:
    """Suggest an expression for a block's text with any numbers, or a selector; empty if none identifies the block."""
    if action is PickAction.IGNORE_TEXT:
        quoted = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", sanitize_text(text[:MAX_EXPRESSION_CHARS]))
        return re.sub(r"[0-9]+", "[0-9]+", quoted.replace(REPLACEMENT, "."))
    return find_selector(content.body or b"", content.version.content_type, text)


def _is_ignored(block: ExplainedBlock) -> bool:
    return block.why is MaskReason.RULE or bool(block.rule)


async def _explain_version(
    db: AppDatabase, domain: Domain, content: VersionContent, rules: Sequence[PageRule], *, parsers: ParserPool
) -> list[ExplainedBlock]:
    """Return the blocks of a version with their masked parts under these rules."""
    parser = DomainParser(parsers, PageRules(tuple(rules)))
    url, body = content.url, content.body or b""
    response = Fetched(200, body, len(body), timedelta(0), content.version.content_type)
    all_blocks = await parser.parse_blocks(response, url, view=FULL_VIEW)
    compared_blocks = await parser.parse_blocks(response, url)
    if all_blocks is None or compared_blocks is None:
        return []
    blocks_by_rule, view = await parser.parse_by_rule(response, url), parser.build_view(url)
    mask = await read_mask(db, domain.id)
    blocks = explain_blocks(all_blocks, compared_blocks, mask, view=view, blocks_by_rule=blocks_by_rule)
    return [block for block in blocks if block.text.strip()]
