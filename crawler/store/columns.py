"""Many rows at once, by COPY, and text as Postgres takes it."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from crawler.core.budget import Cost, Costs, RequestKind
from crawler.core.page import Fingerprint
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
