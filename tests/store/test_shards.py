"""No statement under a lease crosses the shards of a Postgres that is sharded by domain_id.

This is tested in two ways. Every statement that the store keeps as a constant names the domain of each table that it
uses, except those listed here with reasons. And Postgres plans every statement of a real crawl with its actual values:
of each table partitioned by domain, only the partition of the domain is read.
"""

import ast
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection, AsyncCursor
from psycopg.errors import Error
from psycopg_pool import AsyncConnectionPool

import crawler.store
import crawler.store.report.feed
from crawler.store import domains, report
from crawler.store.database import Database, build_libpq_url
from crawler.store.report.checks import PAGE_RULES
from models import metadata
from tests.commands import serving
from tests.engine.crawls import DAY, START, crawl, register, rows

STORE = Path(crawler.store.__file__).parent
ROOMS = ("claim", "frontier", "record", "learned", "plan", "report", "retention")
MODULES = ("domains.py", "domain_rows.py")
# Tables of all domains together: small, and replicated to every shard in a distributed Postgres.
SHARED = {"domain", "domain_alias", "tag", "address_slot", "ledger", "kind_prior", "alembic_version"} | {
    *("feed", "feed_reader", "subscription", "notice", "message", "action", "web_user", "web_session")
}
BY_DOMAIN = {name for name, table in metadata.tables.items() if "domain_id" in table.columns} - SHARED
SPLIT = {name for name, table in metadata.tables.items() if table.dialect_options["postgresql"].get("partition_by")}
# Statements about more than one domain, or that find a row by a value unique among domains.
EXCEPTIONS = {
    ("claim/leases.py", "CANDIDATE"): "a claim looks for the domain: domain_state has one narrow row for each",
    ("claim/leases.py", "HAS_INBOX"): "the same, for domains with a letter in their inbox",
    ("claim/leases.py", "CLAIM_WAIT"): "when the next domain wakes: the same index, once a shift has nothing to do",
    ("domain_rows.py", "WRITE_INBOX_CURSOR"): "by the id of a letter that was read from the domain's inbox before",
    ("frontier/selection.py", "END_REPRICING"): "the same",
    ("report/checks.py", "FEED"): "db check: the places of the feed against the events of all domains",
    ("report/gauges.py", "DATABASE"): "the system page counts the pages of all domains",
    ("report/page_list.py", "FOUND_URLS"): "a search in all domains, for two seconds at most",
    ("report/gauges.py", "CALIBRATION"): "metrics, of all domains together; once a minute at most",
    ("report/expressions.py", "HOLDERS"): "whose leases a worker that starts again frees; at its start",
}
# Statements that name the domain in another way: by USING, in a placeholder in braces, or in a subquery.
NAMED_OTHERWISE = {
    *(("report/freshness.py", "IS_STORED"), ("report/freshness.py", "COUNT_PAGES"), ("retention/versions.py", "SWEEP")),
    ("retention/versions.py", "LOST"),
    *(("retention/visits.py", "BUCKETS"), ("retention/visits.py", "MERGE")),
}
REFERENCE = re.compile(
    r"\b(?:FROM|JOIN|UPDATE|INTO|COPY)\s+(?:ONLY\s+)?(\w+)(?:\s+(?:AS\s+)?(?!ON\b|SET\b|WHERE\b)(\w+))?"
)
NO_ALIAS = {"on", "set", "where", "using", "order", "group", "join", "left", "cross", "limit", "from", "values", "for"}


def statements() -> Iterator[tuple[str, str, str]]:
    """Yield module, name and text of the constants with SQL, with braces for the placeholders."""
    in_rooms = [path for room in ROOMS for path in sorted((STORE / room).glob("*.py"))]
    for path in [*in_rooms, *(STORE / name for name in MODULES)]:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                text = text_of(node.value)
                if text is not None and REFERENCE.search(text):
                    yield path.relative_to(STORE).as_posix(), node.targets[0].id, text


def text_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def without_domain(text: str) -> list[str]:
    """Return the tables that a statement uses without naming their domain."""
    plain = re.sub(r"--[^\n]*", "", text)
    used = [(table, alias) for table, alias in REFERENCE.findall(plain) if table in BY_DOMAIN]
    missing = []
    for table, alias in used:
        name = table if not alias or alias.lower() in NO_ALIAS else alias
        is_named = re.search(rf"\b{name}\.domain_id\b", plain) or re.search(
            rf"\b{table}\s*(?:AS \w+\s*)?\(\s*domain_id\b", plain
        )
        if not is_named and not (name == table and re.search(r"(?<![\w.])domain_id\b", plain)):
            missing.append(f"{table} {alias}".strip())
    return missing


def test_statements_are_found_and_every_exception_is_needed() -> None:
    found = {(module, name): text for module, name, text in statements()}

    assert len(found) > 200
    assert set(EXCEPTIONS) | NAMED_OTHERWISE <= set(found)
    assert all(without_domain(found[each]) for each in NAMED_OTHERWISE)
    assert {"page", "frontier", "cash", "visit", "visit_pack", "domain_state", "pool", "inbox"} <= BY_DOMAIN


def test_each_statement_names_the_domain_of_each_table() -> None:
    made = [("report/checks.py", rule, statement) for rule, (_, statement) in PAGE_RULES.items()]
    offenses = {
        f"{module}: {name}": missing
        for module, name, text in [*statements(), *made]
        if (module, name) not in {*EXCEPTIONS, *NAMED_OTHERWISE} and (missing := without_domain(text))
    }
    assert offenses == {}


def test_a_statement_without_a_domain_is_found() -> None:
    assert without_domain("SELECT p.url FROM page p WHERE p.key = %s") == ["page p"]
    assert without_domain("SELECT FROM page p JOIN cash c ON c.key = p.key WHERE p.domain_id = %s") == ["cash c"]
    assert without_domain("UPDATE frontier SET due_at = now() WHERE key = %s") == ["frontier"]
    assert without_domain("INSERT INTO page (domain_id, key) SELECT %s, %s") == []


# Run at the end of a crawl run and by commands. It reads all domains, because the feed orders their events.
OF_NO_LEASE = (crawler.store.report.feed.APPEND_EVENTS,)
SENT: list[tuple[Any, Any]] = []


class TellingCursor(AsyncCursor[Any]):
    """A cursor that logs its statements before it runs them."""

    async def execute(self, query: Any, params: Any = None, **how: Any) -> Any:
        SENT.append((query, params))
        return await super().execute(query, params, **how)


class TellingConnection(AsyncConnection[Any]):
    """A connection with logging cursors."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.cursor_factory = TellingCursor


@pytest.fixture
async def telling(database_url: str) -> AsyncIterator[Database]:
    SENT.clear()
    pool: Any = AsyncConnectionPool(
        build_libpq_url(database_url), connection_class=TellingConnection, open=False, max_size=4
    )
    await pool.open()
    yield Database(pool)
    await pool.close()


def relations(plan: Any) -> Iterator[str]:
    """Yield every table that a plan reads or writes."""
    if "Relation Name" in plan:
        yield plan["Relation Name"]
    for below in plan.get("Plans", ()):
        yield from relations(below)


async def test_the_statements_of_a_crawl_read_only_partitions_of_the_domain(telling: Database) -> None:
    names = ("amber", "birch", "cedar", "delta", "ember")
    with serving() as site, serving() as other:
        for each in (site, other):
            each.page("/", *(f"/{name}" for name in names), text="the way to all of it")
            for name in names:
                each.page(f"/{name}", text=" ".join(f"{word}{name}" for word in names * 3))
        domain = await register(telling, site.url)
        await register(telling, other.url)
        await crawl(telling, at=START)
        SENT.clear()
        site.page("/birch", text=" ".join(f"{word}birchwood" for word in names * 3))
        await domains.request_refresh(telling, domain, prefix=domain.root, at=START + DAY)
        async with telling.pool.connection() as connection:
            await connection.execute("UPDATE domain SET state = 'paused' WHERE id <> %s", (domain.id,))
        await crawl(telling, at=START + DAY)
        sent = [
            (query, params)
            for query, params in SENT
            if re.match(rb"\s*(SELECT|WITH|UPDATE|INSERT|DELETE)", as_bytes(query)) and query not in OF_NO_LEASE
        ]
        assert "/birch" in site.asked[len(names) :]
    own = await parts_of(telling, domain.id)
    assert len(sent) > 30
    planned, crossing = set[str](), set[tuple[str, str]]()
    for query, params in sent:
        for relation in await tables_of(telling, query, params):
            parent = relation.rpartition("_p")[0]
            if parent in SPLIT - {"visit"}:
                planned.add(parent)
                if relation != own[parent]:
                    crossing.add((relation, as_bytes(query).decode()[:200]))
    assert crossing == set()
    assert {"page", "frontier", "cash", "snapshot", "content"} <= planned
    assert await report.check_invariants(telling) == []


async def parts_of(db: Database, domain_id: int) -> dict[str, str]:
    """Return the partition of each table that has the rows of a domain; all tables are partitioned alike."""
    (name,) = (await rows(db, "SELECT tableoid::regclass::text FROM page WHERE domain_id = %s LIMIT 1", domain_id))[0]
    return {table: table + name.removeprefix("page") for table in SPLIT}


async def tables_of(db: Database, query: Any, params: Any) -> set[str]:
    """Return the tables that Postgres would use for a statement; none for statements that it cannot explain."""
    async with db.pool.connection() as connection:
        try:
            cursor = await connection.execute(b"EXPLAIN (FORMAT JSON) " + as_bytes(query), params)
            plan = (await cursor.fetchall())[0][0][0]["Plan"]
        except Error as error:
            pytest.fail(f"{as_bytes(query).decode()}: {error}")
        finally:
            await connection.rollback()
    return set(relations(plan))


def as_bytes(query: Any) -> bytes:
    return query if isinstance(query, bytes) else str(query).encode()
