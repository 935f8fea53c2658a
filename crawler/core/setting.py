"""What one setting of a domain is: its kind, its bounds, and how it is typed, kept, sent and shown."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_COUNT = 2**31 - 1  # a column of 32 bits


class SettingKind(StrEnum):
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
    min_value, max_value: bounds of a count or a number.  pattern, mismatch: of a text, a regular expression for the
    whole of it, and what a text is that does not match.  explain_refusal: why a text cannot be used, a sentence that
    repeats no secret; empty if it can.  column, key: in the table domain and in JSON, where they are not the name with
    the unit.  label: of its line in `domains show`; without one there is none.  phrase: around the value.
    default_text: of the default.  replaced_setting: another setting, which this one takes the place of.
    needs_full_recrawl: where it becomes another, every page is read again in full.  needs_reweighing: where it becomes
    another, all pages are weighed again.  is_about_importance: it says what is important in the domain.
    is_crawl_option: `recrawl crawl` offers it, for new domains; none that is of importance.  name, default,
    is_in_ordering: of the field, and whether of DomainSettings.ordering; filled in by the table.
    """

    kind: SettingKind
    option: str
    help: str
    min_value: float = 0
    max_value: float = MAX_COUNT
    pattern: str = ""
    mismatch: str = ""
    explain_refusal: Callable[[str], str] | None = None
    column: str = ""
    key: str = ""
    label: str = ""
    phrase: str = "{}"
    default_text: str = ""
    replaced_setting: str = ""
    needs_full_recrawl: bool = False
    needs_reweighing: bool = False
    is_about_importance: bool = False
    is_crawl_option: bool = True
    name: str = ""
    default: Any = None
    is_in_ordering: bool = False
