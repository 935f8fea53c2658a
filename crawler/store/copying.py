"""Many rows at once, by COPY, and text as Postgres takes it."""

from collections.abc import Iterable
from typing import Any

from crawler.store.database import Connection


async def copy(connection: Connection, statement: str, types: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows by a statement that copies in binary. types: of its columns."""
    async with connection.cursor() as cursor, cursor.copy(statement) as sink:
        sink.set_types(types)
        for row in rows:
            await sink.write_row(row)


def clean(text: str | None) -> Any:
    """Text as Postgres takes it: no NUL, no lone surrogate, whatever a server sent."""
    if text is None or (text.isprintable() and text.isascii()):
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
