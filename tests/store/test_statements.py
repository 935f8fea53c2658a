"""All statements of the store name existing tables and columns."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import psycopg
from psycopg import errors

import crawler.store

IS_STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
PLACEHOLDER = re.compile(r"%(?:\((\w+)\)|())[sb]|%%")
PARTS = {"TOP_LINES"}  # parts of statements


def list_statements() -> Iterator[tuple[str, str]]:
    """Yield the constants of the store's modules that are statements, by the name of the module and their own."""
    for module in pkgutil.walk_packages(crawler.store.__path__, "crawler.store."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if name.isupper() and name not in PARTS and isinstance(value, str) and IS_STATEMENT.match(value):
                yield f"{module.name}.{name}", value


def to_prepared(statement: str) -> str:
    """Return a statement with parameters as PREPARE takes them."""
    numbers: dict[str, int] = {}

    def put(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        return f"${numbers.setdefault(found[1] or f' {found.start()}', len(numbers) + 1)}"

    return PLACEHOLDER.sub(put, statement)


def test_every_statement_names_existing_tables_and_columns(database_url: str) -> None:
    unknown, prepared = {}, 0
    with psycopg.connect(database_url, autocommit=True) as connection:
        for name, statement in list_statements():
            try:
                connection.execute(f"PREPARE statement AS {to_prepared(statement)}".encode())
            except (errors.UndefinedColumn, errors.UndefinedTable) as error:
                unknown[name] = str(error)
            except (errors.SyntaxError, errors.DatatypeMismatch, errors.AmbiguousFunction, errors.UndefinedFunction):
                continue  # part of a statement, or parameter types that only their values determine
            except errors.GroupingError:
                continue
            else:
                prepared += 1
                connection.execute("DEALLOCATE statement")

    assert unknown == {}
    assert prepared > 300
