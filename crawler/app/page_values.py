"""Values over time: read the series of a page, preview a value, and add or remove the rule that reads it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from crawler.app.action_log import recorded
from crawler.app.database import AppDatabase
from crawler.app.pages import resolve_page
from crawler.app.rules import change_rules, make_page_pattern, make_rule, merge_rule
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.selectors import View
from crawler.core.page.values import PageValue
from crawler.core.page_rules import PageRule, PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.errors import BadInput, NotFound, name_field
from crawler.store import report
from crawler.store.report import ValueReading

MAX_READINGS = 1000  # of a page, in one series or in all
# Where shops state prices and ratings for other programs (schema.org, Open Graph).
USUAL_SOURCES = (
    *("jsonld:offers.price", "jsonld:offers.lowPrice", "meta:product:price:amount", "meta:og:price:amount"),
    *("[itemprop=price]", "jsonld:aggregateRating.ratingValue"),
)


@dataclass(frozen=True, slots=True)
class ValueRequest:
    """A value as the user gives it. source, unit, mark: as in ValueRule.  pattern: of the pages; "" for this page."""

    name: str = ""
    source: str = ""
    unit: str = ""
    mark: str = ""
    pattern: str = ""

    @property
    def text(self) -> str:
        """Return the text of the ValueRule."""
        options = f":{self.unit}:{self.mark}" if self.mark else f":{self.unit}" if self.unit else ""
        return f"{self.name}{options} {self.source}"


@dataclass(frozen=True, slots=True)
class ValuePreview:
    """What a rule would read from the stored version of a page.

    value: None without a source, or if no version is stored.  why_not: why the rule is not possible, or empty.
    found: what the usual sources have on this page.
    """

    url: Url
    domain: Domain
    request: ValueRequest
    value: PageValue | None = None
    why_not: str = ""
    found: tuple[tuple[str, PageValue], ...] = ()


@dataclass(frozen=True, slots=True)
class ValueSeries:
    """The readings of a value, the oldest first. patterns: of the rules that read it; empty if it is no longer read."""

    name: str
    readings: Sequence[ValueReading]
    patterns: tuple[str, ...]

    @property
    def last(self) -> ValueReading:
        return self.readings[-1]

    @property
    def previous(self) -> ValueReading | None:
        """Return the last reading before the last one that has a number."""
        return next((each for each in reversed(self.readings[:-1]) if each.number is not None), None)


async def read_values(
    db: AppDatabase, text: str, *, name: str = "", before: str = "", max_count: int = MAX_READINGS
) -> tuple[Url, list[ValueReading], str | None]:
    """Return the readings of a page, the newest first, and the cursor of further ones. Raises BadInput.

    name: of one value; "" for all.  before: the cursor of the readings before.
    """
    domain, url = await resolve_page(db, text)
    cursor = _parse_cursor(before) if before else None
    readings = await report.read_values(db, domain, url, name=name, before=cursor, max_count=max_count + 1)
    shown = readings[:max_count]
    return url, shown, f"{shown[-1].at.isoformat()} {shown[-1].name}" if len(readings) > max_count else None


def _parse_cursor(text: str) -> tuple[datetime, str]:
    at, _, name = text.replace(" 00:00 ", "+00:00 ").partition(" ")  # an unescaped plus sign arrives as a space
    with name_field("before"):
        try:
            return datetime.fromisoformat(at), name
        except ValueError as error:
            raise BadInput(f"{text[:60]!r} is not a cursor: pass `next` of the previous response") from error


async def read_series(db: AppDatabase, domain: Domain, url: Url) -> list[ValueSeries]:
    """Return the series of a page by name."""
    readings = await report.read_values(db, domain, url, max_count=MAX_READINGS)
    by_name = groupby(sorted(readings, key=attrgetter("name", "at")), key=attrgetter("name"))
    rules = [rule for rule in domain.settings.rules if rule.view.values and rule.matches(url)]
    return [
        ValueSeries(name, list(each), tuple(rule.pattern for rule in rules if _reads(rule, name)))
        for name, each in by_name
    ]


def _reads(rule: PageRule, name: str) -> bool:
    return any(value.name == name for value in rule.view.value_rules)


async def preview_value(
    db: AppDatabase, domain: Domain, url: Url, request: ValueRequest, *, parsers: ParserPool
) -> ValuePreview:
    """Return what a rule would read from the stored version of a page. The name may still be missing."""
    preview = ValuePreview(url, domain, replace(request, pattern=request.pattern or make_page_pattern(url)))
    usual = await _read_stored(db, domain, url, [f"v{n} {each}" for n, each in enumerate(USUAL_SOURCES)], parsers)
    found = [(source, value) for source, value in zip(USUAL_SOURCES, usual, strict=False) if value.number is not None]
    preview = replace(preview, found=tuple(found))
    if not request.source:
        return preview
    named = replace(request, name=request.name or "value")
    try:
        make_value_rule((), replace(named, pattern=preview.request.pattern))
    except BadInput as error:
        return replace(preview, why_not=str(error))
    values = await _read_stored(db, domain, url, [named.text], parsers)
    return replace(preview, value=values[0] if values else None)


async def _read_stored(
    db: AppDatabase, domain: Domain, url: Url, texts: Sequence[str], parsers: ParserPool
) -> tuple[PageValue, ...]:
    """Read values from the newest version of a page; none if its body is not stored or cannot be parsed."""
    content = await report.read_version(db, domain, url)
    if content is None or content.body is None:
        return ()
    parser = DomainParser(parsers, PageRules((PageRule("/", view=View(values=tuple(texts))),)))
    response = Fetched(200, content.body, len(content.body), timedelta(0), content.version.content_type)
    parsed = await parser.parse(response, url, with_blocks=False)
    return parsed.values if parsed is not None else ()


def make_value_rule(rules: Sequence[PageRule], request: ValueRequest) -> PageRule:
    """Return the existing or new rule of the request's pattern with this value, in place of one with its name.

    Raises BadInput.
    """
    before = next((rule for rule in rules if rule.pattern == request.pattern), None)

    def build_rule() -> PageRule:
        added = View(values=(request.text,))
        read = added.value_rules[0]
        if (read.name, read.unit, read.mark, read.source) != (request.name, request.unit, request.mark, request.source):
            raise ValueError(
                f"{request.name[:40]!r} is not a name: use letters, digits and hyphens; a unit has no spaces"
            )
        rule = before or PageRule(request.pattern)
        others = [each.text for each in rule.view.value_rules if each.name != read.name]
        return replace(rule, view=replace(rule.view, values=(*others, request.text)))

    return make_rule(build_rule)


@recorded("add value")
async def add_value(db: AppDatabase, domain: Domain, request: ValueRequest, *, at: datetime) -> Domain:
    """Add a value to the rule of its pattern; its pages are fetched again. Raises BadInput."""
    return await change_rules(db, domain, lambda rules: merge_rule(rules, make_value_rule(rules, request)), at=at)


@recorded("remove value")
async def remove_value(db: AppDatabase, domain: Domain, pattern: str, name: str, *, at: datetime) -> Domain:
    """Remove a value from the rule of a pattern, and the rule if it has no other effect. Its readings are kept."""

    def remove(rules: tuple[PageRule, ...]) -> tuple[PageRule, ...]:
        before = next((rule for rule in rules if rule.pattern == pattern and _reads(rule, name)), None)
        if before is None:
            raise NotFound(f"no rule for {pattern} reads the value {name}: to list the rules: recrawl rules list")
        values = tuple(each.text for each in before.view.value_rules if each.name != name)
        rule = replace(before, view=replace(before.view, values=values))
        if rule.has_effect:
            return merge_rule(rules, rule)
        return tuple(each for each in rules if each is not before)

    return await change_rules(db, domain, remove, at=at)
