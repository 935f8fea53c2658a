"""An index of pages in Postgres: a table of chunks by heading, with an embedding column for pgvector.

SELECT url, heading, text FROM recrawl_index.chunk ORDER BY embedding <=> %s LIMIT 10;

Your embedding program fills the column where it is null; sync sets it to null again when the text of a chunk changes.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from crawler.errors import CrawlerError
from crawler.export.page_index import MIGRATIONS, RESET_CURSORS, SCHEMA_VERSION, PageIndex
from crawler.store.database import build_libpq_url, format_one_line
from crawler.store.report import ExportedPage

SCHEMA_COMMENT = "recrawl sync, schema version {version}"  # the comment of the schema
# The type vector of pgvector has no number of dimensions here, because that depends on the model. Without the extension
# the column is real[]; ALTER TABLE ... TYPE vector converts it later.
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
    'null until your program fills it, and again after the text changes; the id of a chunk stays the same';
"""
# The other schemas stay in the search path, because users may have triggers on these tables.
SET_SEARCH_PATH = """
    SELECT set_config('search_path', concat_ws(', ', 'recrawl_index', nullif(s, '')), false)
      FROM current_setting('search_path') s
"""
SET_SCHEMA_COMMENT = "COMMENT ON SCHEMA recrawl_index IS '{comment}'"
SELECT_SCHEMA_COMMENT = """
    SELECT obj_description(to_regnamespace('recrawl_index')::oid, 'pg_namespace'), to_regnamespace('recrawl_index')
"""
# The schema of the extension may be outside the search path.
SELECT_VECTOR_TYPE = """
    SELECT quote_ident(n.nspname) || '.vector'
      FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
DELETE_CHUNKS = "DELETE FROM chunk WHERE url = %(url)s AND id <> ALL(%(ids)s::text[])"
UPSERT_CHUNK = """
    INSERT INTO chunk AS c (id, url, place, heading, text)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (id) DO UPDATE
       SET place = excluded.place, heading = excluded.heading, text = excluded.text,
           embedding = CASE WHEN c.text = excluded.text THEN c.embedding END
     WHERE (c.place, c.heading, c.text) IS DISTINCT FROM (excluded.place, excluded.heading, excluded.text)
"""


class PostgresIndex(PageIndex):
    """An index in the schema recrawl_index of an existing database. url: postgresql://...

    Opening it creates the schema if needed, and waits until no other process has the index open.
    """

    _db: psycopg.Connection[TupleRow]

    def __init__(self, url: str) -> None:
        self._url = build_libpq_url(url)

    def _connect(self) -> None:
        try:
            self._db = psycopg.connect(self._url, autocommit=True, connect_timeout=20, application_name="recrawl sync")
        except psycopg.OperationalError as error:
            raise CrawlerError(f"the index cannot be opened: {format_one_line(error)}") from error

    @asynccontextmanager
    async def sync_lock(self) -> AsyncIterator[None]:
        """Do nothing, because opening the index already locks it."""
        yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _convert_errors(), self._db.transaction():
            yield

    def _execute(self, statement: str, **values: object) -> int:
        with _convert_errors():
            return self._db.execute(statement.encode(), values).rowcount

    def _fetch(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        with _convert_errors():
            return self._db.execute(statement.encode(), values).fetchall()

    def _put_chunks(self, page: ExportedPage) -> None:
        """Replace the chunks of a page, and keep the embeddings of unchanged texts."""
        from crawler.export.chunks import chunk_page

        chunks = list(chunk_page(page))
        self._execute(DELETE_CHUNKS, url=page.url, ids=[chunk.id for chunk in chunks])
        rows = [(chunk.id, page.url, n, list(chunk.headings), chunk.text) for n, chunk in enumerate(chunks)]
        with self._db.cursor() as cursor:
            cursor.executemany(UPSERT_CHUNK, rows)

    def _set_up(self) -> None:
        with _convert_errors():
            # The key is "sync" in ASCII; one sync of an index runs at a time.
            self._db.execute("SELECT pg_advisory_lock(%s)", (0x73796E63,))
            self._db.execute(SET_SEARCH_PATH)
            comment, schema = self._db.execute(SELECT_SCHEMA_COMMENT).fetchone() or (None, None)
            if comment == SCHEMA_COMMENT.format(version=SCHEMA_VERSION):
                return
            migrations = {SCHEMA_COMMENT.format(version=version): each for version, each in MIGRATIONS.items()}
            migration = migrations.get(comment)
            if schema is not None and migration is None:
                raise CrawlerError(
                    "the schema recrawl_index was not created by this version of recrawl: use another database"
                )
            (vector,) = self._db.execute(SELECT_VECTOR_TYPE).fetchone() or ("real[]",)
            with self._db.transaction():
                statements = TABLES.format(vector=vector) if migration is None else f"{migration} {RESET_CURSORS}"
                self._db.execute(statements.encode())
                self._db.execute(
                    SET_SCHEMA_COMMENT.format(comment=SCHEMA_COMMENT.format(version=SCHEMA_VERSION)).encode()
                )


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert errors of the server to a CrawlerError with one line."""
    try:
        yield
    except psycopg.Error as error:
        raise CrawlerError(f"the index cannot be written: {format_one_line(error)}") from error
