from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crawler.core.change.word_diff import PageDiff, RunKind
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, Url
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.core.visit.state import State
from crawler.engine.page_diff import diff_versions
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.store import domains
from crawler.store.database import Database
from crawler.store.report import PageVersion, StoredHeaders, VersionContent

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def registered(db: Database, *rules: PageRule) -> Domain:
    settings = DomainSettings(rules=rules)
    return await domains.register(db, Authority("site.test"), scheme="http", domain_settings=settings, at=NOON)


def version(number: int, body: bytes | None, *, text: str = "") -> VersionContent:
    return VersionContent(
        url=Url("http://site.test/tea"),
        version=PageVersion(
            number=number,
            at=NOON + number * timedelta(days=1),
            until=None,
            change=None,
            parts=(),
            magnitude=None,
            distance_bits=None,
            title="",
            language="",
            content_type="text/html; charset=utf-8",
            text_bytes=len(text),
            body_bytes=None if body is None else len(body),
            is_rendered=False,
            is_stored=True,
        ),
        state=State.FETCHED,
        state_at=NOON,
        headers=StoredHeaders(status=200, content_type="text/html", etag=None, last_modified=None),
        content=text,
        confidence=1.0,
        text=text,
        metadata={},
        body=body,
    )


def words(found: PageDiff) -> list[tuple[str, str, bool]]:
    return [
        (
            "".join(run.text for run in block.runs if run.kind is RunKind.OLD),
            "".join(run.text for run in block.runs if run.kind is RunKind.NEW),
            block.is_news,
        )
        for block in found.changed_blocks
    ]


BEFORE = b"<title>Tea</title><p class=price>Tea costs 4.50 a cup</p><p class=ad>Buy pots</p>"
AFTER = b"<title>Tea</title><p class=price>Tea costs 4.90 a cup</p><p class=ad>Buy cups</p>"


async def test_the_words_that_differ_between_two_stored_bodies_are_told(db: Database) -> None:
    domain = await registered(db)
    async with ParserPool(1) as readers:
        found = await diff_versions(db, domain, version(1, BEFORE), version(2, AFTER), parsers=readers)

    assert words(found) == [("4.50", "4.90", True), ("pots", "cups", True)]


async def test_what_a_rule_ignores_is_shown_as_no_news(db: Database) -> None:
    domain = await registered(db, PageRule(pattern="/", view=View(ignore=(".ad",))))
    async with ParserPool(1) as readers:
        found = await diff_versions(db, domain, version(1, BEFORE), version(2, AFTER), parsers=readers)

    assert words(found) == [("4.50", "4.90", True), ("pots", "cups", False)]


async def test_without_a_body_the_texts_are_compared(db: Database) -> None:
    domain = await registered(db)
    before, after = version(1, None, text="Tea costs 4.50\nBuy"), version(2, AFTER, text="Tea costs 4.90\nBuy")
    async with ParserPool(1) as readers:
        found = await diff_versions(db, domain, before, after, parsers=readers)
        other = await diff_versions(db, domain, before, replace(before, text="Tea costs 4.50\nBuy"), parsers=readers)

    assert words(found) == [("4.50", "4.90", True)]
    assert not other
