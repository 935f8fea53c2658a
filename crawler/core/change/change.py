"""The outcomes of a visit, the evidence that decides them, and the reasons why differences do not count."""

from enum import StrEnum


class Change(StrEnum):
    """The outcome of one visit."""

    ADDED = "added"
    UNCHANGED = "unchanged"
    # differs, but not in its content; recorded, and counted as "unchanged" by the change-rate estimate
    COSMETIC = "cosmetic"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    RESTORED = "restored"  # was gone, moved or excluded, and is available again
    UNKNOWN = "unknown"  # the visit did not determine the content or state of the page


class Evidence(StrEnum):
    """The evidence that decided a verdict. Cheaper evidence is tried first."""

    NOT_MODIFIED = "not_modified"  # a 304
    HEAD = "head"  # validators and Content-Length of the response to a HEAD request
    BYTES = "bytes"
    TEXT = "text"  # text and links of the whole page
    VOLATILE = "volatile"  # only words differ that also differ from fetch to fetch, as second fetches showed
    RULE = "rule"  # a user's rule ignores what differs
    MARKUP = "markup"  # only the markup differs, no block
    BOILERPLATE = "boilerplate"  # blocks differ, but none is significant: boilerplate, noise, dates of visits
    VARIANT = "variant"  # as BOILERPLATE, but some of the blocks are known to alternate on this page
    BLOCKS = "blocks"  # blocks were compared
    ENTRIES = "entries"  # the entries of a sitemap or a feed differ
    MAIN = "main"  # the main text; like SHAPE, used if the body of the last Snapshot is no longer available
    SHAPE = "shape"  # the number of words on the lines of the whole text
    STATUS = "status"  # the status of the response, or no response at all


class MaskReason(StrEnum):
    """The reason why a block, or a difference, is not significant."""

    NONE = ""  # significant
    WORDS = "words"  # some words differ from fetch to fetch; the rest is compared
    NOISE = "noise"  # this exact block appeared or disappeared within seconds
    UNSTABLE = "unstable"  # the text at its path differs from fetch to fetch
    BOILERPLATE = "boilerplate"  # boilerplate, now or in the past; for a difference, also any reason not in this list
    DATE = "day"  # only the date of the visit differs
    RULE = "rule"  # a user's rule ignores it, or watches other blocks
