"""What of a page is compared, piece by piece, and what a new rule would leave of it: picked in the page's own text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from crawler.app.database import Database
from crawler.app.rules import make_rule, with_rule
from crawler.core.change.explain import ExplainedBlock, Why, explain_blocks
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url, path_and_query
from crawler.core.page.pick import selector_of
from crawler.core.page.selectors import WHOLE, View, together
from crawler.core.page_rules import PageRule, PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.errors import BadInput
from crawler.format.values import REPLACED, harmless
from crawler.store import report
from crawler.store.learned.memories import mask_of
from crawler.store.report import VersionContent

LONGEST = 300  # characters of an expression that is made of a text
EVERYWHERE = "/"  # the pattern of all pages of a domain


class PickWay(StrEnum):
    """What is to become of the piece that was picked."""

    IGNORE_TEXT = "ignore_text"
    IGNORE = "ignore"
    WATCH = "watch"


@dataclass(frozen=True, slots=True)
class PieceAsked:
    """A pick as it was typed. piece: its number on the page, from 1; 0 for none.

    said: the expression or selector, as its user has changed it; empty for the one that is made of the piece.
    pattern: of the pages that the rule is for.
    """

    piece: int = 0
    way: PickWay = PickWay.IGNORE_TEXT
    said: str = ""
    pattern: str = EVERYWHERE


@dataclass(frozen=True, slots=True)
class PieceFacts:
    """A page's pieces under today's rules, and under a rule that is not made yet. said: what that rule would say.

    picked: the number of the piece.  why_not: why no rule can be made of the pick; empty if one can, or none is asked.
    """

    url: Url
    domain: Domain
    content: VersionContent
    asked: PieceAsked
    pieces: tuple[ExplainedBlock, ...]
    said: str = ""
    preview: tuple[ExplainedBlock, ...] = ()
    why_not: str = ""

    @property
    def left_out(self) -> int:
        """How many pieces the new rule leaves out, beside those that are already."""
        return sum(_is_out(piece) for piece in self.preview) - sum(_is_out(piece) for piece in self.pieces)

    @property
    def page_pattern(self) -> str:
        """The pattern of this page alone."""
        return f"{path_and_query(self.url)}$"


async def find_pieces(
    db: Database, domain: Domain, url: Url, asked: PieceAsked, *, readers: ParserPool
) -> PieceFacts | None:
    """The pieces of a page's last version; None where no body of it is kept."""
    content = await report.version_of(db, domain, url)
    if content is None or content.body is None:
        return None
    rules = domain.settings.rules
    pieces = await _pieces(db, domain, content, rules, readers=readers)
    facts = PieceFacts(url=url, domain=domain, content=content, asked=asked, pieces=tuple(pieces))
    if not 0 < asked.piece <= len(pieces):
        return facts
    said = asked.said or suggestion(content, pieces[asked.piece - 1].text, asked.way)
    if not said:
        return replace(facts, why_not="this piece has no place of its own: ignore its text instead")
    try:
        made = rule_of_pick(rules, replace(asked, said=said))
    except BadInput as error:
        return replace(facts, said=said, why_not=str(error))
    preview = await _pieces(db, domain, content, with_rule(rules, made), readers=readers)
    return replace(facts, said=said, preview=tuple(preview))


def rule_of_pick(rules: Sequence[PageRule], asked: PieceAsked) -> PageRule:
    """The rule of the pick's pattern with what is ignored or watched more. Raises BadInput."""
    before = next((rule for rule in rules if rule.pattern == asked.pattern), None)

    def made() -> PageRule:
        view = View(**{asked.way.value: (asked.said,)})
        if before is None:
            return PageRule(asked.pattern, view=view)
        return replace(before, view=together([before.view or WHOLE, view]))

    return make_rule(made)


def suggestion(content: VersionContent, text: str, way: PickWay) -> str:
    """What a rule would say of a piece: an expression for its text with any numbers in it, or a selector of its place.

    Empty where it has no place of its own.
    """
    if way is PickWay.IGNORE_TEXT:
        quoted = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", harmless(text[:LONGEST]))
        return re.sub(r"[0-9]+", "[0-9]+", quoted.replace(REPLACED, "."))
    return selector_of(content.body or b"", content.version.content_type, text)


def _is_out(piece: ExplainedBlock) -> bool:
    return piece.why is Why.RULE or bool(piece.rule)


async def _pieces(
    db: Database, domain: Domain, content: VersionContent, rules: Sequence[PageRule], *, readers: ParserPool
) -> list[ExplainedBlock]:
    """The blocks of a version with what of each would be compared under these rules."""
    parser = DomainParser(readers, PageRules(tuple(rules)))
    body = content.body or b""
    answer = Fetched(200, body, len(body), timedelta(0), content.version.content_type)
    whole, seen = await parser.blocks(answer, content.url, view=WHOLE), await parser.blocks(answer, content.url)
    if whole is None or seen is None:
        return []
    apart = await parser.apart(answer, content.url)
    mask = await mask_of(db, domain.id)
    return [
        piece
        for piece in explain_blocks(whole, seen, mask, view=parser.view(content.url), apart=apart)
        if piece.text.strip()
    ]
