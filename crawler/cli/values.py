"""What people type and read: instants, spans of time, sizes."""

import ipaddress
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TypeVar

import typer

from crawler import times
from crawler.app.settings import parse_interval, parse_positive

T = TypeVar("T")

DAYS_BACK = {"today": 0, "yesterday": 1}


def for_typer(parse: Callable[[str], T]) -> Callable[[str], T]:
    """The parser with refusals that typer shows: BadParameter in place of ValueError."""

    @wraps(parse)
    def typed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return typed


instant = for_typer(times.instant)
span = for_typer(times.span)
interval = for_typer(parse_interval)
positive = for_typer(parse_positive)


@for_typer
def ip_address(text: str) -> str:
    """An address to listen on."""
    return str(ipaddress.ip_address(text))


def since(text: str, *, now: datetime) -> int | timedelta | datetime:
    """Where to begin in the feed: a cursor of an earlier call, a span before now, a day or an instant (UTC)."""
    wanted = text.strip().lower()
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= 18:
        return int(wanted)
    if wanted in DAYS_BACK:
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=DAYS_BACK[wanted])
    if "-" in wanted:
        return instant(text)
    try:
        return times.span(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is no cursor, no span such as 7d, and no day such as yesterday or 2026-11-22"
        ) from error
