"""What came of a delivery to subscribers, in sentences."""

from crawler.format.values import format_count


def format_delivered(changes: int, messages: int) -> str:
    """Return how much was delivered, without a full stop."""
    return f"{format_count(changes, 'change')} told in {format_count(messages, 'message')}"


def format_undelivered(number: int, why: str) -> str:
    """Return why a subscription was not told, as a sentence without its capital and its full stop."""
    return f"subscription {number} was not told: {why}"
