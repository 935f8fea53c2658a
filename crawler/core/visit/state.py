"""The states of a page, and the responses that decide them."""

from datetime import UTC, datetime
from enum import StrEnum

from crawler.core.http.response import FailureReason

NEVER = datetime(9999, 12, 31, tzinfo=UTC)  # due time of a fetched page with rule `once`

PERMANENT_REDIRECTS = frozenset({301, 308})
TEMPORARY_REDIRECTS = frozenset({300, 302, 303, 307})
OVERLOAD_STATUSES = frozenset({429, 503})
# Failures that may concern the whole domain rather than one page.
NETWORK_FAILURES = frozenset(
    {FailureReason.DNS, FailureReason.REFUSED, FailureReason.RESET, FailureReason.TLS, FailureReason.DEADLINE}
)
# Why a redirect changes no state yet.
BULK_REDIRECT = "bulk_redirect"  # reason: many pages redirect to one target
REDIRECT_TO_EXISTING = "redirect_to_existing"  # reason: the target existed already, so a second visit must confirm


class State(StrEnum):
    """The state of a URL. An unfetched URL has a rank in the discovery order, all others have a due time."""

    UNFETCHED = "unfetched"  # never requested
    FETCHED = "fetched"  # requested, even in vain, and not in a state below
    GONE = "gone"
    MOVED = "moved"
    EXCLUDED = "excluded"  # by robots.txt or by the domain's scope


class PageCategory(StrEnum):
    """The category of a page in reports: its state, except for URLs that never were pages (SQL: page_category)."""

    UNFETCHED = "unfetched"
    FETCHED = "fetched"
    GONE = "gone"
    DEAD_LINK = "dead_link"  # there never was a page
    MOVED = "moved"
    EXCLUDED = "excluded"
    UNREAD_LIST = "unread_list"  # a possible sitemap or feed that was not read yet


AWAY = frozenset({State.GONE, State.MOVED})  # a page that is read again after these is restored, changed or not
