"""List which blocks of a page are compared, and preview a rule made from a block that the user picked."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TypeVar

from crawler.app.action_log import recorded
from crawler.app.database import AppDatabase
from crawler.app.rules import change_rules, make_page_pattern, make_rule, merge_rule
from crawler.core.change.change import MaskReason
from crawler.core.change.explain import ExplainedBlock, explain_blocks
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.block import BlockKind
from crawler.core.page.selector_finder import PickedElement, describe_element, find_selector
from crawler.core.page.selectors import FULL_VIEW, View, merge_views
from crawler.core.page_rules import PageRule, PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.errors import BadInput
from crawler.format.values import REPLACEMENT, sanitize_text
from crawler.store import report
from crawler.store.learned.domain_memory import read_mask
from crawler.store.report import VersionContent

T = TypeVar("T")
R = TypeVar("R")

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

    picked: the number of an element in the view of this version, to choose what to do with it; 0 for none.
    selector, words: the chosen element and its text, in place of a block.
    text: the expression or selector as edited by the user; empty for the suggested one.
    pattern: the pattern of the pages to which the rule applies.
    """

    block: int = 0
    action: PickAction = PickAction.IGNORE_TEXT
    text: str = ""
    pattern: str = ALL_PAGES
    version: int = 0
    picked: int = 0
    selector: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """The blocks of a page under the current rules, and under a rule that is not saved yet.

    element: what was picked in the view; its text is that of its longest block.
    text: the expression or selector of the picked block; empty without one.  preview: the blocks under that rule.
    why_not: why no rule can be made from the picked block; empty if one can, or if no block was picked.
    """

    url: Url
    domain: Domain
    content: VersionContent
    request: BlockPickRequest
    blocks: tuple[ExplainedBlock, ...]
    element: PickedElement | None = None
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
    if request.picked:
        return await _add_element(db, facts, parsers=parsers)
    words = blocks[request.block - 1].text if 0 < request.block <= len(blocks) else request.words
    if not (words or request.text):
        return facts
    selector = request.selector if request.action is not PickAction.IGNORE_TEXT else ""
    expression = request.text or selector or await _suggest_expression(facts, words, parsers=parsers)
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


async def _add_element(db: AppDatabase, facts: BlockFacts, *, parsers: ParserPool) -> BlockFacts:
    """Return the facts with the element that was picked in the view of a version."""
    request = facts.request
    content = await report.read_version(db, facts.domain, facts.url, number=request.version or None)
    element = await _read_body(facts, content, describe_element, request.picked, parsers=parsers) if content else None
    if element is None:
        return replace(facts, why_not=f"version {request.version} has no such element, or is no longer stored")
    texts = [each.text for each in facts.blocks if each.kind is BlockKind.TEXT and each.text in element.text]
    return replace(facts, element=PickedElement(max(texts, key=len, default=element.text), element.selectors))


@recorded("add rule")
async def add_pick_rule(db: AppDatabase, domain: Domain, request: BlockPickRequest, *, at: datetime) -> Domain:
    """Add the rule for a picked block, or extend the rule of its pattern. Raises BadInput."""
    return await change_rules(db, domain, lambda before: merge_rule(before, make_pick_rule(before, request)), at=at)


def make_pick_rule(rules: Sequence[PageRule], request: BlockPickRequest) -> PageRule:
    """Return the existing or new rule of the request's pattern, extended by the picked block. Raises BadInput."""
    before = next((rule for rule in rules if rule.pattern == request.pattern), None)

    def build_rule() -> PageRule:
        view = View(**{request.action.value: (request.text,)})
        if before is None:
            return PageRule(request.pattern, view=view)
        return replace(before, view=merge_views([before.view or FULL_VIEW, view]))

    return make_rule(build_rule)


async def _suggest_expression(facts: BlockFacts, text: str, *, parsers: ParserPool) -> str:
    """Suggest an expression for a block's text with any numbers, or a selector; empty if none identifies the block."""
    if facts.request.action is PickAction.IGNORE_TEXT:
        quoted = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", sanitize_text(text[:MAX_EXPRESSION_CHARS]))
        return re.sub(r"[0-9]+", "[0-9]+", quoted.replace(REPLACEMENT, "."))
    return await _read_body(facts, facts.content, find_selector, text, parsers=parsers) or ""


async def _read_body(
    facts: BlockFacts, content: VersionContent, call: Callable[[bytes, str, T], R], argument: T, *, parsers: ParserPool
) -> R | None:
    """Return the result of a function that parses the body of a version, in a process of its own."""
    body, content_type = content.body or b"", content.version.content_type
    response = Fetched(200, body, len(body), timedelta(0), content_type)
    return await parsers.read(
        partial(call, body, content_type, argument), response, party=facts.domain.id, needs_process=True
    )


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
