"""The description of one setting of a domain: its kind, its bounds, and how it is entered, stored and displayed."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct

MAX_COUNT = 2**31 - 1  # a column of 32 bits


class SettingKind(StrEnum):
    """The type and unit of a setting."""

    COUNT = "count"  # an integer from min_value to max_value
    NUMBER = "number"  # a decimal number from min_value to max_value
    FACTOR = "factor"  # a number above 0
    SHARE = "share"  # above 0 and below 1, entered as 95% or 0.95
    BYTES = "bytes"  # entered as 500MB
    DELAY = "delay"  # seconds, 0 or more
    SPAN = "span"  # a duration above 0, entered as 3d, stored in seconds
    TEXTS = "texts"  # several texts; the option can be repeated
    TEXT = "text"  # one text; it must match `pattern` unless that is empty
    FLAG = "flag"


class Setting(Struct, frozen=True):
    """One setting: how it is entered, validated, stored and displayed.

    kind: its type and unit.  option, help: the command-line option with its metavariable, and its help text.
    min_value, max_value: the bounds of a count or number.
    pattern, mismatch: a regular expression that must match a whole text, and the end of the error message if it does
    not ("'x' is ..."); by default the alternatives of the pattern are listed.
    explain_problem: returns why a text is invalid, in a sentence without secrets, or "".
    column, key: the column of table domain and the JSON key; by default the name, with the unit of a duration.
    label: the label in `domains show` and in the web UI, by default the name.
    phrase, default_text: how `domains show` displays a value and the default.
    replaced_setting: another setting that is cleared when this one is set.
    needs_full_recrawl, needs_rescoring: if the setting changes, all pages are fetched in full, or their due times are
    recomputed.
    is_about_importance: the setting affects the importance of pages.
    is_crawl_option: `recrawl crawl` offers it for new domains; never true for settings about importance.
    name, default, is_in_ordering: the field, its default, and whether it is a field of DomainSettings.ordering;
    set by `domain_settings._complete_setting`.
    """

    kind: SettingKind
    option: str
    help: str
    min_value: float = 0
    max_value: float = MAX_COUNT
    pattern: str = ""
    mismatch: str = ""
    explain_problem: Callable[[str], str] | None = None
    column: str = ""
    key: str = ""
    label: str = ""
    phrase: str = "{}"
    default_text: str = ""
    replaced_setting: str = ""
    needs_full_recrawl: bool = False
    needs_rescoring: bool = False
    is_about_importance: bool = False
    is_crawl_option: bool = True
    name: str = ""
    default: Any = None
    is_in_ordering: bool = False
