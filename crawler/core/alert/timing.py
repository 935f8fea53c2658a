"""When a message may be sent: at once, in a digest, or after quiet hours; by the wall clock of a time zone.

And when it is sent again that was not taken, until there are no further tries.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from crawler.core.http.backoff import compute_backoff

DAY = timedelta(days=1)
DAYS_OF_WEEK = 7
MIN_DIGEST = timedelta(minutes=1)
DAILY, WEEKLY = "daily", "weekly"
DEFAULT_HOUR = time(8)  # of a daily or weekly digest: when people begin to read
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")  # as date.weekday counts them
EXAMPLE_DIGEST = "write it as in 1h, 30m, daily, daily@07:30, weekly, weekly@fri or weekly@fri-07:30"
EXAMPLE_QUIET = "write them as in 22-07 or 21:30-06:45"

MAX_WAIT = timedelta(hours=1)  # of ours, from one try to the next
# a longer Retry-After is a mistake: the receiver would not learn of anything for long
MAX_RETRY_AFTER = timedelta(days=1)
MAX_TRIES = 16  # of one message: six minutes for the first four, then to the hour; ten hours in all
MAX_MESSAGE_AGE = timedelta(days=3)  # a weekend, and a receiver that is mended on Monday
# what a receiver that is gone for good was not told must not pile up without an end
DEAD_LETTER_AGE = timedelta(days=90)

_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?", re.ASCII)
_EVERY = re.compile(r"(\d{1,4})([mh])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1)}


@dataclass(frozen=True, slots=True)
class Digest:
    """Changes told together. every: so often, counted from midnight of each day.  at: or once a day, at this time.

    weekday: or once a week, at that time of this day; 0 is Monday.
    """

    every: timedelta | None = None
    at: time | None = None
    weekday: int | None = None

    def find_boundary(self, instant: datetime, *, zone: ZoneInfo) -> datetime:
        """The first instant at or after another at which a digest is due (UTC)."""
        day = instant.astimezone(zone).date()
        if self.at is not None:
            days = 0 if self.weekday is None else (self.weekday - day.weekday()) % DAYS_OF_WEEK
            period = 1 if self.weekday is None else DAYS_OF_WEEK
            coming = _convert_to_utc(day + days * DAY, self.at, zone)
            return coming if coming >= instant else _convert_to_utc(day + (days + period) * DAY, self.at, zone)
        assert self.every is not None
        midnight, next_midnight = (_convert_to_utc(each, time(), zone) for each in (day, day + DAY))
        passed = -((midnight - instant) // self.every)  # rounded up
        return min(midnight + passed * self.every, next_midnight)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours of each day in which nobody is told anything. Where they end before they begin they go over midnight."""

    begin: time
    end: time

    def find_end(self, instant: datetime, *, zone: ZoneInfo) -> datetime:
        """The instant at which somebody may be told: itself, or when the quiet hours end that it lies in (UTC)."""
        day = instant.astimezone(zone).date()
        for first in (day - DAY, day):
            last = first if self.begin < self.end else first + DAY
            begin, end = _convert_to_utc(first, self.begin, zone), _convert_to_utc(last, self.end, zone)
            if begin <= instant < end:
                return end
        return instant.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class ReleaseTime:
    """When a change may be told, and whether together with all others of that instant."""

    at: datetime
    is_grouped: bool


@dataclass(frozen=True, slots=True)
class DeliveryTimes:
    """When somebody wants to be told. zone: an IANA name, by whose wall clock digest and quiet hours go.

    ValueError, a sentence for a person, for a zone that this machine does not know.
    """

    zone: str = "UTC"
    digest: Digest | None = None
    quiet: QuietHours | None = None

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as error:  # a folder of the database of zones is an OSError
            raise ValueError(f"{self.zone!r} is no time zone that this machine knows") from error

    def is_quiet(self, at: datetime) -> bool:
        """Whether nobody is told anything at an instant, whatever is due."""
        return self.quiet is not None and self.quiet.find_end(at, zone=ZoneInfo(self.zone)) > at

    def compute_release(self, found_at: datetime) -> ReleaseTime:
        """When a change that was found at an instant may be told. Never before it was found."""
        zone = ZoneInfo(self.zone)
        due = self.digest.find_boundary(found_at, zone=zone) if self.digest is not None else found_at
        release_at = self.quiet.find_end(due, zone=zone) if self.quiet is not None else due
        return ReleaseTime(release_at, is_grouped=self.digest is not None or release_at != due)


IMMEDIATE_DELIVERY = DeliveryTimes()


def parse_digest(text: str) -> Digest:
    """A digest as it is typed: a span of a minute to a day, daily, daily@HH:MM, weekly, weekly@DAY[-HH:MM]. ValueError.

    A weekly one is told on Mondays unless it says another day.
    """
    word, at_sign, when = text.strip().lower().partition("@")
    if word == DAILY:
        return Digest(at=_parse_time(when, EXAMPLE_DIGEST) if at_sign else DEFAULT_HOUR)
    if word == WEEKLY:
        name, dash, hour = (when if at_sign else WEEKDAYS[0]).partition("-")
        if name not in WEEKDAYS:
            raise ValueError(f"{name!r} is no day of a digest, which is one of {', '.join(WEEKDAYS)}: {EXAMPLE_DIGEST}")
        return Digest(at=_parse_time(hour, EXAMPLE_DIGEST) if dash else DEFAULT_HOUR, weekday=WEEKDAYS.index(name))
    match = _EVERY.fullmatch(word)
    every = int(match[1]) * _UNITS[match[2]] if match else timedelta(0)
    if at_sign or not MIN_DIGEST <= every <= DAY:
        raise ValueError(f"{text!r} is no digest of a minute to a day: {EXAMPLE_DIGEST}")
    return Digest(every=every)


def parse_quiet_hours(text: str) -> QuietHours:
    """Quiet hours as they are typed: HH-HH or HH:MM-HH:MM. ValueError."""
    begin, dash, end = text.strip().partition("-")
    if not dash:
        raise ValueError(f"{text!r} are no quiet hours: {EXAMPLE_QUIET}")
    quiet_hours = QuietHours(_parse_time(begin, EXAMPLE_QUIET), _parse_time(end, EXAMPLE_QUIET))
    if quiet_hours.begin == quiet_hours.end:
        raise ValueError(f"{text!r} begin when they end, and would never be over: {EXAMPLE_QUIET}")
    return quiet_hours


def _parse_time(text: str, example: str) -> time:
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[1]) > 24 or int(match[2] or 0) > 59 or (int(match[1]) == 24 and int(match[2] or 0)):
        raise ValueError(f"{text!r} is no time of a day: {example}")
    return time(int(match[1]) % 24, int(match[2] or 0))


def _convert_to_utc(day: date, at: time, zone: ZoneInfo) -> datetime:
    """The instant (UTC) at which clocks of a zone show a time; one that they leave out counts by the clock before."""
    return datetime.combine(day, at, tzinfo=zone).astimezone(UTC)


def compute_next_try(tries: int, *, retry_after: timedelta | None, now: datetime) -> datetime:
    """When a message, or a receiver, is tried again after its nth failure in a row: 30 s, doubling to an hour.

    tries: 1 or more.  retry_after: the wait that the receiver asks for (Retry-After), which is kept to.
    """
    return now + compute_backoff(
        tries, requested_wait=retry_after, max_backoff=MAX_WAIT, max_requested_wait=MAX_RETRY_AFTER
    )


def should_give_up(tries: int, *, waiting_since: datetime, now: datetime) -> bool:
    """Whether a message is given up. waiting_since: when a receiver that is there could have taken it first."""
    return tries >= MAX_TRIES or now - waiting_since > MAX_MESSAGE_AGE
