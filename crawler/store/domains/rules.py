"""A domain's rules: read with the domain, replaced by its user as a whole; the pages under them are counted here."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from crawler.core.domain import Domain
from crawler.core.http import Url
from crawler.core.page import View
from crawler.core.page_rules import PageRule
from crawler.store.database import Connection, Database

# Of a domain d.
RULES_COLUMN = "ARRAY(SELECT to_jsonb(r) FROM rule r WHERE r.domain_id = d.id ORDER BY r.no) AS rules"
INSERT = """
    INSERT INTO rule (domain_id, no, pattern, least_s, most_s, weight, once, max_pages, pages,
                      ignore, watch, ignore_text, render)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
AT_ONCE = 10_000  # URLs read at a time


def rules_from(rows: Iterable[dict[str, Any]]) -> tuple[PageRule, ...]:
    """What RULES_COLUMN gives as rules."""
    return tuple(
        PageRule(
            pattern=row["pattern"],
            least=span(row["least_s"]),
            most=span(row["most_s"]),
            weight=None if row["weight"] is None else float(row["weight"]),  # JSON knows no whole floats
            once=row["once"],
            max_pages=row["max_pages"],
            view=View(tuple(row["ignore"]), tuple(row["watch"]), tuple(row["ignore_text"])),
            render=row["render"],
        )
        for row in rows
    )


async def replace_rules(connection: Connection, domain_id: int, rules: Sequence[PageRule]) -> None:
    """Put these rules in place of those there are.

    A rule that limited the pages of its pattern before keeps its count of them; for one that begins to, the pages that
    are known are counted. The domain's hot row is held meanwhile, so that its lease holder admits none in between.
    """
    await connection.execute("SELECT FROM domain_state WHERE domain_id = %s FOR UPDATE", (domain_id,))
    cursor = await connection.execute(
        "DELETE FROM rule WHERE domain_id = %s RETURNING pattern, max_pages, pages", (domain_id,)
    )
    pages = {pattern: pages for pattern, most, pages in await cursor.fetchall() if most is not None}
    uncounted = [rule for rule in rules if rule.max_pages is not None and rule.pattern not in pages]
    if uncounted:
        pages |= await _counted(connection, domain_id, uncounted)
    async with connection.cursor() as writing:
        await writing.executemany(INSERT, [_row(domain_id, n, rule, pages) for n, rule in enumerate(rules)])


async def pages_by_pattern(db: Database, domain: Domain) -> dict[str, int]:
    """How many pages count for each rule that limits them."""
    async with db.transaction() as connection:
        cursor = await connection.execute(
            "SELECT pattern, pages FROM rule WHERE domain_id = %s AND max_pages IS NOT NULL", (domain.id,)
        )
        return dict(await cursor.fetchall())


async def _counted(connection: Connection, domain_id: int, rules: Sequence[PageRule]) -> Counter[str]:
    """How many pages of the domain are known under each pattern. It reads all of them: 5 s for a million."""
    found: Counter[str] = Counter()
    async with connection.cursor(name="pages_of_rules") as cursor:
        await cursor.execute("SELECT url FROM page WHERE domain_id = %s", (domain_id,))
        while rows := await cursor.fetchmany(AT_ONCE):
            found.update(rule.pattern for (url,) in rows for rule in rules if rule.matches(Url(url)))
    return found


def _row(domain_id: int, no: int, rule: PageRule, pages: dict[str, int]) -> tuple[object, ...]:
    counted = pages.get(rule.pattern, 0) if rule.max_pages is not None else 0
    return (
        *(domain_id, no, rule.pattern, seconds(rule.least), seconds(rule.most)),
        *(rule.weight, rule.once, rule.max_pages, counted),
        *(list(rule.view.ignore), list(rule.view.watch), list(rule.view.ignore_text), rule.render),
    )


def span(length_s: float | None) -> timedelta | None:
    """A column of seconds as a span of time."""
    return None if length_s is None else timedelta(seconds=length_s)


def seconds(length: timedelta | None) -> float | None:
    """And back."""
    return None if length is None else length.total_seconds()
