"""Databases for tests: copies of a template that are cleaned after a test and given to the next one.

Copying a template makes the kernel create some thousand files, which costs up to a second of its time. Cleaning touches
what the test has changed and nothing else. A database that cannot be made equal to a new copy by that, since a test has
changed its schema, is dropped, and the next test gets a new copy. tests/test_databases.py compares the two.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

Connection = psycopg.Connection[tuple[Any, ...]]

END_MS = 30_000  # for a backend that is told to end; only a broken one takes longer

# Everything of a database but its rows, as two numbers for each system catalog: how many rows it has, and how many of
# them are younger than a given transaction. Two catalogs change without the schema: `pg_class`, whose lasting columns
# are read instead, and `pg_statistic`. Schemas of temporary tables stay when these are gone.
CATALOGS = """
    SELECT oid::regclass::text FROM pg_class
     WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND NOT relisshared
       AND relname NOT IN ('pg_class', 'pg_statistic')
     ORDER BY relname
"""
CHANGES = "SELECT '{catalog}', count(*), count(*) FILTER (WHERE age(t.xmin) < age('{since}'::xid)) FROM {catalog} t"
NOT_TEMPORARY = " WHERE nspname !~ '^pg_(toast_)?temp_'"
RELATIONS = """
    SELECT hashtextextended(string_agg(ROW(
               oid, relname, relnamespace, reltype, reloftype, relowner, relam, reltablespace, relhasindex,
               relpersistence, relkind, relnatts, relchecks, relhasrules, relhastriggers, relhassubclass,
               relrowsecurity, relforcerowsecurity, relispopulated, relreplident, relispartition, relacl, reloptions
           )::text, '' ORDER BY oid), 0)
      FROM pg_class WHERE relpersistence <> 't'
"""
# Of the database itself. A new copy has neither grants nor settings.
PROPERTIES = """
    SELECT datdba, datacl, datistemplate, datconnlimit,
           EXISTS (SELECT FROM pg_db_role_setting WHERE setdatabase = d.oid),
           EXISTS (SELECT FROM pg_shdescription WHERE objoid = d.oid AND classoid = 'pg_database'::regclass)
      FROM pg_database d WHERE datname = current_database()
"""

USER_TABLES = "relkind = 'r' AND relpersistence <> 't' AND oid >= 16384 AND relnamespace <> 'pg_catalog'::regnamespace"
REFERENCED = "SELECT confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
WITH_ROWS = f"SELECT oid::regclass::text FROM pg_class WHERE {USER_TABLES} AND pg_relation_size(oid) > 0"
PARTITIONS = """
    SELECT i.inhrelid::regclass::text
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relkind IN ('r', 'p')
"""
# What Postgres has counted of each table and index.
COUNTED = "SELECT oid, relpages, reltuples, relallvisible FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't'"
RECOUNT = """
    UPDATE pg_class c SET relpages = x.pages, reltuples = x.rows, relallvisible = x.visible
      FROM unnest(%s::oid[], %s::int[], %s::real[], %s::int[]) AS x(oid, pages, rows, visible) WHERE c.oid = x.oid
"""
SEQUENCES = """
    SELECT setval(seqrelid, seqstart, false) FROM pg_sequence WHERE pg_sequence_last_value(seqrelid) IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class NewCopy:
    """What a new copy of the template looks like.

    since: the transaction after which every change is a test's.  rows: of each table that is not empty, as COPY writes
    them.  counts: pages, rows and all-visible pages of each table and index, by its oid.  schema: see `read_schema`.
    """

    since: str
    partitions: frozenset[str]
    rows: dict[str, bytes]
    counts: dict[int, list[float]]
    schema: tuple[Any, ...]


@dataclass(slots=True)
class TestDatabases:
    """The databases of one test process: as many as its tests have had at the same time.

    server: a superuser's URL of the server.  template: the name of the database to copy.
    copies: how many copies were made so far.
    """

    __test__ = False

    server: str
    template: str
    copies: int = 0
    _clean: list[tuple[str, NewCopy]] = field(default_factory=list)
    _connection: Connection | None = None  # to no database that is lent

    @contextmanager
    def lend(self) -> Iterator[str]:
        """Lend a database that equals a new copy of the template; gives its URL."""
        name, new = self._clean.pop() if self._clean else self._copy()
        try:
            yield with_database(self.server, name)
        finally:
            # Under another name, so that whatever outlives the test cannot reach the next one's database.
            name = self._take_back(name)
            with psycopg.connect(with_database(self.server, name), autocommit=True) as connection:
                is_clean = clean(connection, new)
            if is_clean:
                self._clean.append((name, new))
            else:
                self._drop(name)

    def close(self) -> None:
        """Drop all databases."""
        while self._clean:
            self._drop(self._clean.pop()[0])
        if self._connection is not None:
            self._connection.close()

    def _copy(self) -> tuple[str, NewCopy]:
        name = new_name()
        self._execute(f"CREATE DATABASE {name} TEMPLATE {self.template}")
        self.copies += 1
        with psycopg.connect(with_database(self.server, name), autocommit=True) as connection:
            return name, read_new_copy(connection)

    def _take_back(self, name: str) -> str:
        """End all sessions of a database and rename it; gives the new name."""
        renamed = new_name()
        self._execute(
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid, {END_MS}) FROM pg_stat_activity WHERE datname = '{name}'",
            f"ALTER DATABASE {name} RENAME TO {renamed}",
            f"ALTER DATABASE {renamed} ALLOW_CONNECTIONS true",
            f"ALTER DATABASE {renamed} RESET ALL",
        )
        return renamed

    def _drop(self, name: str) -> None:
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, *statements: str) -> None:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.server, autocommit=True)
        for statement in statements:
            self._connection.execute(statement.encode())


def read_new_copy(connection: Connection) -> NewCopy:
    """Read from a new copy what `clean` needs to know."""
    ((since,),) = connection.execute("SELECT pg_current_xact_id()::xid::text").fetchall()
    tables = [table for (table,) in connection.execute(WITH_ROWS.encode()).fetchall()]
    partitions = frozenset(name for (name,) in connection.execute(PARTITIONS).fetchall())
    rows = {table: copy_out(connection, table) for table in tables}
    counts = {oid: counts for oid, *counts in connection.execute(COUNTED).fetchall()}
    return NewCopy(since, partitions, rows, counts, read_schema(connection, since))


def clean(connection: Connection, new: NewCopy) -> bool:
    """Make a database equal to a new copy; gives whether that was possible.

    Removes rows, partitions that were added, what Postgres has counted, and sets sequences back. Other sessions have
    ended before, and with them locks, channels and temporary tables.
    """
    partitions = {name for (name,) in connection.execute(PARTITIONS).fetchall()}
    if added := partitions - new.partitions:
        connection.execute(f"DROP TABLE {', '.join(added)}".encode())
    if read_schema(connection, new.since) != new.schema:
        return False
    tables = [table for (table,) in connection.execute(WITH_ROWS.encode()).fetchall()]
    changed = [table for table in tables if table not in new.rows]
    changed += [table for table, rows in new.rows.items() if copy_out(connection, table) != rows]
    if changed:
        # Not DELETE and VACUUM, which leave indexes as large as they were, and other plans to the next test. But to
        # truncate a table to which foreign keys refer is to make new files for all tables that have them.
        referenced = {table for (table,) in connection.execute(REFERENCED.encode()).fetchall()} & set(changed)
        with connection.transaction():
            if others := set(changed) - referenced:
                connection.execute(f"TRUNCATE {', '.join(others)}".encode())
            connection.execute("SET LOCAL session_replication_role = replica")
            for table in referenced:
                connection.execute(f"DELETE FROM {table}".encode())
            for table in new.rows.keys() & set(changed):
                copy_in(connection, table, new.rows[table])
        for table in referenced:
            connection.execute(f"VACUUM {table}".encode())
            connection.execute(f"REINDEX TABLE {table}".encode())
    connection.execute(SEQUENCES)
    counted = [oid for oid, *counts in connection.execute(COUNTED).fetchall() if new.counts[oid] != counts]
    if counted:
        pages, rows, visible = zip(*(new.counts[oid] for oid in counted), strict=True)
        connection.execute(RECOUNT, (counted, list(pages), list(rows), list(visible)))
    connection.execute("DELETE FROM pg_statistic WHERE starelid >= 16384")
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.execute("SELECT pg_stat_reset()")
    return True


def read_schema(connection: Connection, since: str) -> tuple[Any, ...]:
    """Read a value that changes whenever anything of a database changes but rows, sequences and statistics."""
    changes = " UNION ALL ".join(
        CHANGES.format(since=since, catalog=name) + (NOT_TEMPORARY if name == "pg_namespace" else "")
        for (name,) in connection.execute(CATALOGS).fetchall()
    )
    return tuple(tuple(connection.execute(query.encode()).fetchall()) for query in (changes, PROPERTIES, RELATIONS))


def copy_out(connection: Connection, table: str) -> bytes:
    with connection.cursor().copy(f"COPY {table} TO STDOUT".encode()) as copy:
        return b"".join(bytes(part) for part in copy)


def copy_in(connection: Connection, table: str, rows: bytes) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
        copy.write(rows)


@contextmanager
def empty_database(server: str) -> Iterator[str]:
    """Make a database without any table, and drop it afterwards; gives its URL."""
    name = new_name()
    execute(server, f"CREATE DATABASE {name} TEMPLATE template0")
    yield with_database(server, name)
    execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def new_name() -> str:
    return f"test_{uuid.uuid4().hex}"


def with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
