"""The roles of users of the web UI."""

from enum import StrEnum


class Role(StrEnum):
    """What a user may do; each role includes the ones before it."""

    VIEW = "view"  # read
    EDIT = "edit"  # daily work: recrawl, settings, rules, notifications
    ADMIN = "admin"  # users, tokens, and what reaches the machine
