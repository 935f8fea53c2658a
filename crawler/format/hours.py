"""The crawl hours of a domain in words."""

from datetime import datetime

from crawler.core.budget import closing, opening, speed_at
from crawler.core.domain import Domain
from crawler.format.values import format_when


def format_opening(domain: Domain, *, at: datetime) -> str:
    """Format whether the hours are open at an instant, how fast requests may be sent, and until when.

    An empty string where they are always open.
    """
    if domain.hours.is_always:
        return ""
    opens_at = opening(domain.hours, at)
    if opens_at > at:
        return f"closed until {format_when(opens_at, now=at)}"
    closes_at = closing(domain.hours, at)
    until = f" until {format_when(closes_at, now=at)}" if closes_at else ""
    speed = speed_at(domain.hours, at)
    return f"open{until}{f', {speed:g} times the usual speed' if speed != 1 else ''}"
