"""Many rows at once, by COPY, and text as Postgres takes it."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from crawler.core.budget.cost import Cost, Costs, RequestKind
from crawler.core.page.fingerprint import Fingerprint
from crawler.store.database import Connection


async def copy(connection: Connection, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows into a table by COPY, in binary. columns: names and types, as `unnest` takes them."""
    names, types = zip(*_parse_columns(columns), strict=True)
    statement = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
    async with connection.cursor() as cursor, cursor.copy(statement.encode()) as sink:
        sink.set_types(types)
        for row in rows:
            await sink.write_row(row)


def unnest(columns: str) -> str:
    """Return the SQL that makes rows `x` of parameters that hold a column each.

    columns: names, which are those of the parameters, and types: "key bytea, rank int".
    """
    parsed = _parse_columns(columns)
    arrays = ", ".join(f"%({name})s::{kind}[]" for name, kind in parsed)
    return f"unnest({arrays}) AS x({', '.join(name for name, _ in parsed)})"


def placeholders(names: Iterable[str]) -> str:
    """Return the SQL for the values of parameters that have these names."""
    return ", ".join(f"%({name})s" for name in names)


def excluded(names: Iterable[str]) -> str:
    """Return what an upsert sets where the row is there: these columns to what was to be inserted."""
    return ", ".join(f"{name} = excluded.{name}" for name in names)


def _parse_columns(columns: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (each.split() for each in columns.split(","))]


def clean(text: str | None) -> Any:
    """Text as Postgres takes it: no NUL, no lone surrogate, whatever a server sent."""
    if text is None or (text.isprintable() and text.isascii()):
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def costs_from(stored: dict[str, Any]) -> Costs:
    """Costs as `domain_state.costs` holds them; kinds that it does not name are not learnt yet."""
    return Costs(**{RequestKind(kind).value: Cost(**figures) for kind, figures in stored.items()})


def costs_to(costs: Costs) -> dict[str, Any]:
    """The value of `domain_state.costs` for these costs; kinds without a look are left out."""
    return {kind.value: asdict(costs.of(kind)) for kind in RequestKind if costs.of(kind).looks}


def from_signed(number: int | None) -> Fingerprint | None:
    """A Fingerprint is unsigned everywhere but in its column."""
    return None if number is None else Fingerprint(number & 0xFFFF_FFFF_FFFF_FFFF)


def to_signed(fingerprint: Fingerprint | None) -> int | None:
    """A Fingerprint as its signed column holds it."""
    return None if fingerprint is None else fingerprint - (1 << 64) if fingerprint >= 1 << 63 else fingerprint
