"""Growing waits after failed logins, by the name of the user and by the address of the client."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address

FREE_FAILURES = {"name": 5, "address": 20}  # an address may be that of many users behind a proxy
FIRST_WAIT = timedelta(seconds=1)  # after the failures that are free; each further one doubles it
MAX_WAIT = timedelta(minutes=15)
MAX_DOUBLINGS = 10
MEMORY = timedelta(days=1)  # failures are forgotten after this time without another one
MAX_KEYS = 10_000  # the key that failed longest ago goes first
IPV6_SITE_BITS = 64  # of an address; the rest of it is free to choose for the client

Key = tuple[str, str]


@dataclass(slots=True)
class LoginThrottle:
    """The failed logins of this process."""

    _failures: OrderedDict[Key, tuple[int, datetime]] = field(default_factory=OrderedDict)

    def begin(self, name: str, address: str, *, at: datetime) -> timedelta:
        """Count an attempt as failed and return zero, or return how long to wait before it may be made."""
        keys = _list_keys(name, address)
        wait = max(self._compute_wait(key, at=at) for key in keys)
        if wait > timedelta(0):
            return wait
        for key in keys:
            self._failures[key] = (self._count(key, at=at) + 1, at)
            self._failures.move_to_end(key)
        while len(self._failures) > MAX_KEYS:
            self._failures.popitem(last=False)
        return timedelta(0)

    def succeed(self, name: str, address: str) -> None:
        """Forget the failures of a name, and the attempt of the address that succeeded."""
        by_name, by_address = _list_keys(name, address)
        self._failures.pop(by_name, None)
        if by_address in self._failures:
            count, at = self._failures[by_address]
            self._failures[by_address] = (max(count - 1, 0), at)

    def _count(self, key: Key, *, at: datetime) -> int:
        count, last = self._failures.get(key, (0, at))
        return count if at - last < MEMORY else 0

    def _compute_wait(self, key: Key, *, at: datetime) -> timedelta:
        excess = self._count(key, at=at) - FREE_FAILURES[key[0]]
        if excess < 0:
            return timedelta(0)
        wait: timedelta = min(FIRST_WAIT * 2 ** min(excess, MAX_DOUBLINGS), MAX_WAIT)
        return self._failures[key][1] + wait - at


def _list_keys(name: str, address: str) -> tuple[Key, Key]:
    try:
        parsed = ip_address(address)
        if parsed.version == 6:
            address = str(int(parsed) >> (128 - IPV6_SITE_BITS))
    except ValueError:
        address = ""
    return ("name", name), ("address", address)
