"""When a notification may be sent: at once, in a digest, or after quiet hours, in the local time of a time zone.

Also when a failed message is sent again, and when to give up.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from crawler.core.http.backoff import compute_backoff

DAY = timedelta(days=1)
DAYS_OF_WEEK = 7
MIN_DIGEST = timedelta(minutes=1)  # the shortest period
DAILY, WEEKLY = "daily", "weekly"
DEFAULT_HOUR = time(8)  # of a daily or weekly digest
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")  # indexed as by date.weekday
EXAMPLE_DIGEST = "write it as in 1h, 30m, daily, daily@07:30, weekly, weekly@fri or weekly@fri-07:30"
EXAMPLE_QUIET = "write them as in 22-07 or 21:30-06:45"

MAX_WAIT = timedelta(hours=1)  # between two tries without Retry-After
MAX_RETRY_AFTER = timedelta(days=1)  # a longer Retry-After is probably a mistake and counts as this long
MAX_TRIES = 16  # per message; with waits that double from 30 s to an hour, about nine hours in total
MAX_MESSAGE_AGE = timedelta(days=3)  # longer than a weekend, because a broken receiver may be repaired on Monday
DEAD_LETTER_AGE = timedelta(days=90)  # since the last try, after which an undelivered message is deleted

_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?", re.ASCII)
_EVERY = re.compile(r"(\d{1,4})([mh])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1)}


class Digest(Struct, frozen=True):
    """A digest of changes: periodic, daily or weekly.

    every: the period, counted from midnight of each day.  at: the time of a daily or weekly digest.
    weekday: the day of a weekly digest; 0 is Monday.
    """

    every: timedelta | None = None
    at: time | None = None
    weekday: int | None = None

    def find_boundary(self, instant: datetime, *, zone: ZoneInfo) -> datetime:
        """Return the first instant (UTC) at or after `instant` at which a digest is due."""
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


class QuietHours(Struct, frozen=True):
    """Hours of each day without notifications. If `end` is before `begin`, they cross midnight."""

    begin: time
    end: time

    def find_end(self, instant: datetime, *, zone: ZoneInfo) -> datetime:
        """Return when a notification may be sent (UTC): `instant`, or the end of the quiet hours around it."""
        day = instant.astimezone(zone).date()
        for first in (day - DAY, day):
            last = first if self.begin < self.end else first + DAY
            begin, end = _convert_to_utc(first, self.begin, zone), _convert_to_utc(last, self.end, zone)
            if begin <= instant < end:
                return end
        return instant.astimezone(UTC)


class ReleaseTime(Struct, frozen=True):
    """When a notification may be sent. is_grouped: whether it is sent in one message with all others of that time."""

    at: datetime
    is_grouped: bool


class DeliveryTimes(Struct, frozen=True):
    """When a user wants notifications. zone: the IANA time zone of digests and quiet hours.

    Raises ValueError with a message for the user if this machine has no such zone.
    """

    zone: str = "UTC"
    digest: Digest | None = None
    quiet: QuietHours | None = None

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as error:  # a folder of the time zone database raises OSError
            raise ValueError(f"{self.zone!r} is not a time zone of this machine") from error

    def is_quiet(self, at: datetime) -> bool:
        """Return whether an instant is in quiet hours."""
        return self.quiet is not None and self.quiet.find_end(at, zone=ZoneInfo(self.zone)) > at

    def compute_release(self, found_at: datetime) -> ReleaseTime:
        """Return when a notification of a change may be sent; never before the change was found."""
        zone = ZoneInfo(self.zone)
        due = self.digest.find_boundary(found_at, zone=zone) if self.digest is not None else found_at
        release_at = self.quiet.find_end(due, zone=zone) if self.quiet is not None else due
        return ReleaseTime(release_at, is_grouped=self.digest is not None or release_at != due)


IMMEDIATE_DELIVERY = DeliveryTimes()


def parse_digest(text: str) -> Digest:
    """Parse a digest: an interval of a minute to a day, daily, daily@HH:MM, weekly, or weekly@DAY[-HH:MM].

    The default day is Monday. Raise ValueError if the text is invalid.
    """
    word, at_sign, when = text.strip().lower().partition("@")
    if word == DAILY:
        return Digest(at=_parse_time(when, EXAMPLE_DIGEST) if at_sign else DEFAULT_HOUR)
    if word == WEEKLY:
        name, dash, hour = (when if at_sign else WEEKDAYS[0]).partition("-")
        if name not in WEEKDAYS:
            raise ValueError(f"{name!r} is not a day of a digest ({', '.join(WEEKDAYS)}): {EXAMPLE_DIGEST}")
        return Digest(at=_parse_time(hour, EXAMPLE_DIGEST) if dash else DEFAULT_HOUR, weekday=WEEKDAYS.index(name))
    match = _EVERY.fullmatch(word)
    every = int(match[1]) * _UNITS[match[2]] if match else timedelta(0)
    if at_sign or not MIN_DIGEST <= every <= DAY:
        raise ValueError(f"{text!r} is not a digest, or not an interval of a minute to a day: {EXAMPLE_DIGEST}")
    return Digest(every=every)


def parse_quiet_hours(text: str) -> QuietHours:
    """Parse quiet hours: HH-HH or HH:MM-HH:MM. Raise ValueError if the text is invalid."""
    begin, dash, end = text.strip().partition("-")
    if not dash:
        raise ValueError(f"{text!r} are not quiet hours: {EXAMPLE_QUIET}")
    quiet_hours = QuietHours(_parse_time(begin, EXAMPLE_QUIET), _parse_time(end, EXAMPLE_QUIET))
    if quiet_hours.begin == quiet_hours.end:
        raise ValueError(f"{text!r} begin and end at the same time, so they would never end: {EXAMPLE_QUIET}")
    return quiet_hours


def _parse_time(text: str, example: str) -> time:
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[1]) > 24 or int(match[2] or 0) > 59 or (int(match[1]) == 24 and int(match[2] or 0)):
        raise ValueError(f"{text!r} is not a time of day: {example}")
    return time(int(match[1]) % 24, int(match[2] or 0))


def _convert_to_utc(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Convert a local time to UTC. A time that daylight saving time skips counts by the offset before the change."""
    return datetime.combine(day, at, tzinfo=zone).astimezone(UTC)


def compute_next_try(tries: int, *, retry_after: timedelta | None, now: datetime) -> datetime:
    """Return when to try again after failures in a row of one message or of one receiver.

    The wait is 30 s after the first failure, and doubles up to an hour.
    tries: the number of failures, 1 or more.
    retry_after: the wait that the receiver requests (Retry-After); up to MAX_RETRY_AFTER, it can extend the wait.
    """
    wait = compute_backoff(tries, requested_wait=retry_after, max_backoff=MAX_WAIT, max_requested_wait=MAX_RETRY_AFTER)
    return now + wait


def should_give_up(tries: int, *, waiting_since: datetime, now: datetime) -> bool:
    """Return whether to give up a message that could not be delivered.

    tries: the number of failures.  waiting_since: when the message could first have been delivered.
    """
    return tries >= MAX_TRIES or now - waiting_since > MAX_MESSAGE_AGE
