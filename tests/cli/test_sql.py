"""recrawl db: url, shell, sql and grant."""

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from crawler.cli.running.sql_output import make_csv_cell
from crawler.runtime.postgres.client import find_program, split_password
from tests.commands import Answer, Recrawl, Site, command, run_here
from tests.databases import execute


def test_a_select_prints_a_table_csv_and_json(recrawl: Recrawl) -> None:
    asked = "SELECT 1 AS one, 'x%y' AS two, NULL AS three, timestamptz '2026-01-01Z' AS four"

    shown = recrawl("db", "sql", asked)
    found = recrawl("db", "sql", asked, "--json").json
    typed = recrawl("db", "sql", "-", "--csv", stdin=asked)
    empty = recrawl("db", "sql", "SELECT 1 AS one WHERE false", "--csv")

    assert [line.split() for line in shown.out.splitlines()][::2] == [
        ["one", "two", "three", "four"],
        ["1", "x%y", "2026-01-01T00:00:00+00:00"],
    ]
    assert found["columns"] == ["one", "two", "three", "four"]
    assert found["rows"] == [{"one": 1, "two": "x%y", "three": None, "four": "2026-01-01T00:00:00+00:00"}]
    assert typed.out == "one,two,three,four\n1,x%y,,2026-01-01T00:00:00+00:00\n"
    assert empty.out == "one\n"


TYPES = {
    "date '2026-11-24'": "2026-11-24",
    "time '12:30'": "12:30:00",
    "timestamp '2026-11-24 12:30'": "2026-11-24T12:30:00",
    "interval '90 min'": 5400.0,
    "1.5::numeric": 1.5,
    "avg(2)": 2,
    "1e400::numeric": "1" + "0" * 400,
    "'NaN'::float8": "nan",
    "'Infinity'::numeric": "Infinity",
    "'7f000001-0000-0000-0000-000000000000'::uuid": "7f000001-0000-0000-0000-000000000000",
    "'127.0.0.1'::inet": "127.0.0.1",
    "'\\x00ff'::bytea": "00ff",
    "int4range(1, 5)": "[1, 5)",
    "ARRAY[date '2026-11-24', NULL]": ["2026-11-24", None],
    """'{"a": [1, null]}'::jsonb""": {"a": [1, None]},
}


def test_every_type_has_a_place_in_json(recrawl: Recrawl) -> None:
    columns = ", ".join(f"{value} AS c{n}" for n, value in enumerate(TYPES))
    found = recrawl("db", "sql", f"SELECT {columns}", "--json")

    assert found.code == 0, found.err
    assert dict(zip(TYPES, found.json["rows"][0].values(), strict=True)) == TYPES
    assert "NaN" not in found.out


def test_a_table_ends_where_it_is_long_and_csv_does_not(recrawl: Recrawl) -> None:
    many = "SELECT n FROM generate_series(1, 500) AS n"

    shown = recrawl("db", "sql", many, "--limit", "3")

    assert shown.out.split() == ["n", shown.out.split()[1], "1", "2", "3"]
    assert shown.complaint == "Only the first 3 rows are shown: use --limit N for more, or --csv for all"
    assert len(recrawl("db", "sql", many, "--csv").out.splitlines()) == 501


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("DELETE FROM domain", "use one SELECT, or --write"),
        ("SELECT 1; DROP TABLE domain", "use one SELECT, or --write"),
        ("COMMIT; DROP TABLE domain", "use one SELECT, or --write"),
        ("COPY (SELECT 1) TO '/tmp/recrawl-written'", "use one SELECT, or --write"),
        ("WITH d AS (DELETE FROM domain RETURNING id) SELECT * FROM d", "must not contain data-modifying statements"),
        ("SELECT set_config('transaction_read_only', 'off', false)", "transaction read-write mode"),
        ("SELECT nextval('domain_id_seq')", "because it writes"),
        ("SELECT nosuch", 'column "nosuch" does not exist'),
        ("SELECT 1/0", "division by zero"),
        (" ", "the statement is empty"),
    ],
)
def test_writes_need_the_write_option(recrawl: Recrawl, statement: str, complaint: str) -> None:
    recrawl("domains", "add", "a.test", "--offline")

    done = recrawl("db", "sql", statement)

    assert done.code in {1, 2}
    assert done.out == ""
    assert complaint in done.complaint
    assert not Path("/tmp/recrawl-written").exists()
    assert recrawl("db", "sql", "SELECT count(*) FROM domain", "--csv").out == "count\n1\n"


def test_with_write_it_writes_one_statement(recrawl: Recrawl) -> None:
    done = recrawl("db", "sql", "CREATE VIEW mine AS SELECT 5 AS five", "--write")
    two = recrawl("db", "sql", "SELECT 1; SELECT 2", "--write")
    copied = recrawl("db", "sql", "COPY (SELECT 1) TO STDOUT", "--write")

    assert done.out == "CREATE VIEW\n"
    assert recrawl("db", "sql", "SELECT five FROM mine", "--csv").out == "five\n5\n"
    assert "multiple commands" in two.complaint
    assert "COPY cannot be used" in copied.complaint


@pytest.mark.parametrize("text", ["=1+1", "+1", "-cmd", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"])
def test_no_text_is_a_formula(text: str) -> None:
    assert make_csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", [-5, 4.5, None, "a=b", "", "2026-01-01"])
def test_what_is_no_formula_is_as_it_was(value: object) -> None:
    assert make_csv_cell(value) == value


def test_a_title_that_is_a_formula_and_sql_is_harmless_in_csv(recrawl: Recrawl, site: Site) -> None:
    title = "=HYPERLINK(&quot;http://x.test&quot;); DROP TABLE page;--, x"
    site.answers["/"] = Answer(f"<title>{title}</title><p>words to read".encode())
    recrawl("crawl", site.url, "--allow-private")

    done = recrawl("db", "sql", "SELECT title, version FROM page_text", "--csv")

    rows = list(csv.reader(io.StringIO(done.out)))
    assert rows == [["title", "version"], ['\'=HYPERLINK("http://x.test"); DROP TABLE page;--, x', "1"]]


def test_where_the_database_is(recrawl: Recrawl, database_url: str) -> None:
    assert recrawl("db", "url").out == f"{database_url}\n"
    assert recrawl("db", "url", "--json").json == {"url": database_url}


def test_a_stopped_embedded_database_gets_the_remedy(tmp_path: Path) -> None:
    done = run_here("db", "url", database_url=None, home=tmp_path)

    assert done.code == 1
    assert "start it with recrawl up" in done.complaint


@pytest.fixture
def role(database_url: str) -> Iterator[str]:
    """Return the name of a role that is dropped afterwards, because roles are shared by all databases."""
    name = f"reader_{os.getpid()}"
    yield name
    with psycopg.connect(database_url) as owner:
        is_there = owner.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is not None
    if is_there:
        execute(database_url, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_role_that_reads_the_views_and_nothing_else(
    recrawl: Recrawl, site: Site, database_url: str, role: str
) -> None:
    recrawl("crawl", site.url, "--allow-private")

    granted = recrawl("db", "grant", role, "--json").json
    again = recrawl("db", "grant", role)
    with psycopg.connect(granted["url"], autocommit=True) as reader:
        pages = reader.execute("SELECT count(*) FROM page_text").fetchall()
        for view in granted["views"]:
            reader.execute(f"SELECT * FROM {view} LIMIT 1".encode())
        for refused in ("SELECT * FROM page", "DELETE FROM page", "CREATE TABLE mine (a int)"):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
                reader.execute(refused.encode())

    assert pages == [(3,)]
    assert {"page_text", "page_versions", "report_freshness", "report_page"} <= set(granted["views"])
    assert again.code == 0
    assert "its password is unchanged" in again.complaint


def test_what_was_granted_is_taken_back(recrawl: Recrawl, database_url: str, role: str) -> None:
    granted = recrawl("db", "grant", role, "--json").json

    taken = recrawl("db", "revoke", role, "--json").json
    again = recrawl("db", "revoke", role)

    assert taken == {"role": role, "removed": True}
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(granted["url"])
    assert again.code == 2
    assert "there is no role" in again.complaint


def test_an_existing_role_loses_its_privileges_and_stays(recrawl: Recrawl, database_url: str, role: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role}".encode())
    recrawl("db", "grant", role)

    taken = recrawl("db", "revoke", role)

    assert "still exists" in taken.complaint
    with psycopg.connect(database_url, autocommit=True) as owner:
        asked = "SELECT has_table_privilege(%s, 'report_page', 'SELECT')"
        assert owner.execute(asked, (role,)).fetchone() == (False,)


@pytest.mark.parametrize("name", ["x; DROP TABLE page", 'a"b', "pg_read_all_data", "Upper", "9x", ""])
def test_a_role_has_a_plain_name(recrawl: Recrawl, name: str) -> None:
    done = recrawl("db", "grant", name)

    assert done.code == 2
    assert "is not a valid role name" in done.complaint


def test_psql_opens_on_the_database_and_writes_nothing_unless_it_may(database_url: str, tmp_path: Path) -> None:
    asked = "SELECT count(*) FROM report_domain;\nCREATE TABLE mine (a int);\n"

    reading = command("db", "shell", database_url=database_url, home=tmp_path, stdin=asked)
    writing = command("db", "shell", "--write", database_url=database_url, home=tmp_path, stdin=asked)

    assert "(1 row)" in reading.out
    assert "read-only transaction" in reading.err
    assert "CREATE TABLE" in writing.out


@pytest.mark.parametrize(
    ("url", "open_url", "password"),
    [
        (
            "postgresql://me:s%40e@db.test:5/crawl?sslmode=require",
            "postgresql://me@db.test:5/crawl?sslmode=require",
            "s@e",
        ),
        ("postgresql+psycopg://me@db.test/crawl", "postgresql://me@db.test/crawl", None),
        ("postgresql://db.test/crawl?password=x&user=me", "postgresql://db.test/crawl?user=me", "x"),
    ],
)
def test_a_password_stands_in_no_argument(url: str, open_url: str, password: str | None) -> None:
    assert split_password(url) == (open_url, password)


def test_there_is_a_psql() -> None:
    assert find_program("psql").name == "psql"
