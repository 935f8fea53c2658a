"""An index of pages in Postgres, in chunks by heading with a column for embeddings: a table shaped for pgvector.

SELECT url, heading, text FROM recrawl_index.chunk ORDER BY embedding <=> %s LIMIT 10;

What embeds texts fills the column where it is null; sync empties it where a chunk's text changes, and there alone.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Self

import psycopg
from psycopg.rows import TupleRow

from crawler.errors import CrawlerError
from crawler.store.database import libpq_url, one_line
from crawler.store.report import TakenPage

FORM = 3  # of the tables, and of the chunks in them; kept in the comment of their schema
SAYS_FORM = "recrawl sync, form {form}"
LOCK = 0x73796E63  # "sync": one at a time keeps an index
CONNECT_SECONDS = 20

# vector is pgvector's type, without a number of dimensions, since the model decides that; real[] serves where the
# extension is not installed, and ALTER TABLE ... TYPE vector makes it one later.
TABLES = """
CREATE SCHEMA recrawl_index;
CREATE TABLE recrawl_index.sync (
    domain text PRIMARY KEY, cursor bigint, pass bigint NOT NULL DEFAULT 0, source text);
CREATE TABLE recrawl_index.page (
    url text PRIMARY KEY, domain text NOT NULL REFERENCES recrawl_index.sync ON DELETE CASCADE, title text NOT NULL,
    language text NOT NULL, version int NOT NULL, version_at timestamptz, seen_at timestamptz, importance float8,
    pass bigint NOT NULL);
CREATE INDEX page_pass ON recrawl_index.page (domain, pass);
CREATE TABLE recrawl_index.chunk (
    id text PRIMARY KEY, url text NOT NULL REFERENCES recrawl_index.page ON DELETE CASCADE, place int NOT NULL,
    heading text[] NOT NULL, text text NOT NULL, embedding {vector});
CREATE INDEX chunk_page ON recrawl_index.chunk (url);
CREATE INDEX chunk_to_embed ON recrawl_index.chunk (id) WHERE embedding IS NULL;
COMMENT ON COLUMN recrawl_index.chunk.embedding IS
    'null until it is filled, and again when the text changes; the id of a chunk stays';
"""
# What an older form lacks; then all pages are read anew, since they were cut by an older rule.
FROM_FORM = {1: "ALTER TABLE recrawl_index.sync ADD COLUMN source text;", 2: ""}
READ_ANEW = "UPDATE recrawl_index.sync SET cursor = NULL;"
SAY_FORM = "COMMENT ON SCHEMA recrawl_index IS '{said}'"
FOUND_FORM = """
    SELECT obj_description(to_regnamespace('recrawl_index')::oid, 'pg_namespace'), to_regnamespace('recrawl_index')
"""
# Wherever the extension was put: its schema need not be among those that are searched.
VECTOR = """
    SELECT quote_ident(n.nspname) || '.vector'
      FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
PUT_PAGE = """
    INSERT INTO recrawl_index.page (url, domain, title, language, version, version_at, seen_at, importance, pass)
    SELECT %(url)s, domain, %(title)s, %(language)s, %(version)s, %(version_at)s, %(seen_at)s, %(importance)s, pass
      FROM recrawl_index.sync WHERE domain = %(domain)s
    ON CONFLICT (url) DO UPDATE
       SET domain = excluded.domain, title = excluded.title, language = excluded.language, version = excluded.version,
           version_at = excluded.version_at, seen_at = excluded.seen_at, importance = excluded.importance,
           pass = excluded.pass
"""
DROP_CHUNKS = "DELETE FROM recrawl_index.chunk WHERE url = %(url)s AND id <> ALL(%(ids)s::text[])"
PUT_CHUNK = """
    INSERT INTO recrawl_index.chunk AS c (id, url, place, heading, text)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (id) DO UPDATE
       SET place = excluded.place, heading = excluded.heading, text = excluded.text,
           embedding = CASE WHEN c.text = excluded.text THEN c.embedding END
     WHERE (c.place, c.heading, c.text) IS DISTINCT FROM (excluded.place, excluded.heading, excluded.text)
"""
BEGIN_ANEW = """
    INSERT INTO recrawl_index.sync AS s (domain, pass, source) VALUES (%(domain)s, 1, %(source)s)
    ON CONFLICT (domain) DO UPDATE SET pass = s.pass + 1, cursor = NULL, source = excluded.source
"""
END_ANEW = """
    DELETE FROM recrawl_index.page p USING recrawl_index.sync s
     WHERE p.domain = %(domain)s AND s.domain = p.domain AND p.pass <> s.pass
"""
CURSOR = "SELECT cursor FROM recrawl_index.sync WHERE domain = %(domain)s AND source = %(source)s"
MOVE_CURSOR = "UPDATE recrawl_index.sync SET cursor = %(cursor)s WHERE domain = %(domain)s"


class PostgresIndex:
    """The index in a database, in a schema of its own, which is made; a context manager. url: postgresql://...

    Its verbs are those of SqliteIndex, each a transaction of its own.

    Another sync of the same index waits until this one ends. Raises CrawlerError where it cannot be written.
    """

    def __init__(self, url: str) -> None:
        self._url = libpq_url(url)

    def __enter__(self) -> Self:
        try:
            self._db: psycopg.Connection[TupleRow] = psycopg.connect(
                self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="recrawl sync"
            )
        except psycopg.OperationalError as error:
            raise CrawlerError(f"the index cannot be opened: {one_line(error)}") from error
        try:
            with _as_ours():
                self._db.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
                self._set_up()
        except BaseException:
            self._db.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def domains(self) -> list[str]:
        """The domains of which it has anything."""
        with _as_ours():
            return [name for (name,) in self._db.execute("SELECT domain FROM recrawl_index.sync ORDER BY domain")]

    def forget(self, domain: str) -> int:
        """Take a domain out; gives how many pages went."""
        values = {"domain": domain}
        with _as_ours(), self._db.transaction():
            removed = self._db.execute("DELETE FROM recrawl_index.page WHERE domain = %(domain)s", values).rowcount
            self._db.execute("DELETE FROM recrawl_index.sync WHERE domain = %(domain)s", values)
        return removed

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Nothing more: whoever has it open has it alone."""
        yield

    def cursor(self, domain: str, *, source: str) -> int | None:
        with _as_ours():
            found = self._db.execute(CURSOR, {"domain": domain, "source": source}).fetchone()
        return None if found is None else found[0]

    def put(self, domain: str, pages: Sequence[TakenPage], *, cursor: int | None) -> int:
        removed = 0
        with _as_ours(), self._db.transaction():
            self._db.execute("INSERT INTO recrawl_index.sync (domain) VALUES (%s) ON CONFLICT DO NOTHING", (domain,))
            for page in pages:
                if page.is_there:
                    self._put_page(domain, page)
                else:
                    removed += self._db.execute("DELETE FROM recrawl_index.page WHERE url = %s", (page.url,)).rowcount
            if cursor is not None:
                self._db.execute(MOVE_CURSOR, {"domain": domain, "cursor": cursor})
        return removed

    def begin_anew(self, domain: str, *, source: str) -> None:
        with _as_ours():
            self._db.execute(BEGIN_ANEW, {"domain": domain, "source": source})

    def end_anew(self, domain: str, *, cursor: int) -> int:
        values = {"domain": domain, "cursor": cursor}
        with _as_ours(), self._db.transaction():
            removed = self._db.execute(END_ANEW, values).rowcount
            self._db.execute(MOVE_CURSOR, values)
        return removed

    def _set_up(self) -> None:
        said, schema = self._db.execute(FOUND_FORM).fetchone() or (None, None)
        if said == SAYS_FORM.format(form=FORM):
            return
        older = next((change for form, change in FROM_FORM.items() if said == SAYS_FORM.format(form=form)), None)
        if schema is not None and older is None:
            raise CrawlerError("its schema recrawl_index is no index of this recrawl: name another database")
        (vector,) = self._db.execute(VECTOR).fetchone() or ("real[]",)
        with self._db.transaction():
            change = TABLES.format(vector=vector) if older is None else f"{older} {READ_ANEW}"
            self._db.execute(change.encode())
            self._db.execute(SAY_FORM.format(said=SAYS_FORM.format(form=FORM)).encode())

    def _put_page(self, domain: str, page: TakenPage) -> None:
        from crawler.export.chunks import chunks_of_page

        names = ("url", "title", "language", "version", "version_at", "seen_at", "importance")
        self._db.execute(PUT_PAGE, {name: getattr(page, name) for name in names} | {"domain": domain})
        chunks = list(chunks_of_page(page))
        self._db.execute(DROP_CHUNKS, {"url": page.url, "ids": [chunk.id for chunk in chunks]})
        rows = [(chunk.id, page.url, n, list(chunk.headings), chunk.text) for n, chunk in enumerate(chunks)]
        with self._db.cursor() as cursor:
            cursor.executemany(PUT_CHUNK, rows)


@contextmanager
def _as_ours() -> Iterator[None]:
    """What the index's server says against it, as one line of ours."""
    try:
        yield
    except psycopg.Error as error:
        raise CrawlerError(f"the index cannot be written: {one_line(error)}") from error
