"""What one setting of a domain is: its kind, its bounds, and how it is typed, kept, sent and shown."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MOST_COUNTED = 2**31 - 1  # a column of 32 bits


class Kind(StrEnum):
    """The type and unit of a setting."""

    COUNT = "count"  # a whole number from `least` to `most`
    NUMBER = "number"  # from `least` to `most`
    FACTOR = "factor"  # a number above 0
    SHARE = "share"  # above 0 and below 1, typed as 95% or 0.95
    BYTES = "bytes"  # typed as 500MB
    DELAY = "delay"  # seconds, 0 or more
    SPAN = "span"  # a length of time above 0, typed as 3d, kept in seconds
    TEXTS = "texts"  # the option may be repeated
    TEXT = "text"  # as `pattern` has it
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how its user types it, and how it is kept, sent and shown.

    option, help: of the command line, the option with the word for its value.
    least, most: bounds of a count or a number.  pattern, misfit: of a text, a regular expression for the whole of it,
    and what a text is that does not match.
    refuses: why a text cannot be used, a sentence that repeats no secret; empty if it can.
    column, key: in the table domain and in JSON, where they are not the name with the unit.
    label: of its line in `domains show`; without one there is none.  words: around the value.  unset: of the default.
    instead_of: another setting, which this one takes the place of.
    rereads: where it becomes another, every page is read again in full.
    reprices: where it becomes another, all pages are weighed again.
    of_importance: it says what is important in the domain.  of_crawl: `recrawl crawl` offers it, for new domains; none
    that is of importance.
    name, default, is_of_ordering: of the field, and whether of DomainSettings.ordering; filled in by the table.
    """

    kind: Kind
    option: str
    help: str
    least: float = 0
    most: float = MOST_COUNTED
    pattern: str = ""
    misfit: str = ""
    refuses: Callable[[str], str] | None = None
    column: str = ""
    key: str = ""
    label: str = ""
    words: str = "{}"
    unset: str = ""
    instead_of: str = ""
    rereads: bool = False
    reprices: bool = False
    of_importance: bool = False
    of_crawl: bool = True
    name: str = ""
    default: Any = None
    is_of_ordering: bool = False
