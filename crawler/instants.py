"""Instants as people write them."""

from datetime import UTC, datetime

FIRST_YEAR, LAST_YEAR = 1970, 2200  # beyond them arithmetic on instants runs out of room


def instant(text: str) -> datetime:
    """An instant in ISO 8601, in UTC; without a time zone it is UTC already.

    ValueError, a sentence for a person, where it is none, or one that nothing could be reckoned with.
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!r} is no ISO 8601 instant such as 2026-01-31T12:00Z") from error
    if not FIRST_YEAR <= found.year < LAST_YEAR:
        raise ValueError(f"{text!r} is not between {FIRST_YEAR} and {LAST_YEAR}")
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
