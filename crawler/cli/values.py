"""Parsers of typed values: times, durations, numbers, addresses and cursors."""

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


def make_typer_parser(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Wrap a parser so that it raises BadParameter, which typer shows, in place of ValueError."""

    @wraps(parse)
    def parse_typed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return parse_typed


parse_instant = make_typer_parser(times.parse_instant)
parse_span = make_typer_parser(times.parse_span)
parse_interval_option = make_typer_parser(parse_interval)
parse_positive_option = make_typer_parser(parse_positive)


@make_typer_parser
def parse_ip_address(text: str) -> str:
    """Parse an IP address to listen on."""
    return str(ipaddress.ip_address(text))


def parse_since(text: str, *, now: datetime, number: str = "cursor") -> int | timedelta | datetime:
    """Parse a position in the change feed or in the versions of a page.

    It can be a number (a cursor or a version), a duration before now, a time, or a day, which means its start (UTC).
    number: what a number would be, for the message.  Raises typer.BadParameter.
    """
    lowered = text.strip().lower()
    if lowered.isascii() and lowered.isdigit() and len(lowered) <= 18:
        return int(lowered)
    if lowered in DAYS_BACK:
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=DAYS_BACK[lowered])
    if "-" in lowered:
        return parse_instant(text)
    try:
        return times.parse_span(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not a {number}, a duration such as 7d, or a day such as yesterday or 2026-11-22"
        ) from error
