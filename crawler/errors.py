"""Exceptions for failures of recrawl itself. Failures of websites are values, never exceptions."""

from collections.abc import Iterator
from contextlib import contextmanager


class CrawlerError(Exception):
    """An error that the user can fix. The message says in one line what happened and what to do next."""


class BadInput(CrawlerError):
    """Input that cannot be used: a URL, a pattern, an instant. field: the name of the field in a document, if known."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class NotFound(BadInput):
    """The name or number of something that does not exist, such as a domain that is not registered."""


class Conflict(BadInput):
    """A request that does not fit the current state, such as a second registration of a domain."""


class NotAllowed(CrawlerError):
    """Something that the role or the token of the user does not permit."""


class ReceiverNotAllowed(BadInput):
    """A target of notifications that contains no secret, but whose host may not be contacted."""


@contextmanager
def name_field(field: str) -> Iterator[None]:
    """Add the name of the field to a BadInput that the block raises, unless it has one."""
    try:
        yield
    except BadInput as error:
        error.field = error.field or field
        raise


class PluginBroken(CrawlerError):
    """A configured plugin that is not installed, cannot be loaded, or does not fit its extension point."""


class NotStored(CrawlerError):
    """A version of a page that does not exist or is no longer stored."""


class StoreUnavailable(CrawlerError):
    """The database cannot be reached or does not respond. Nothing that was recorded is lost."""


class CursorTooOld(CrawlerError):
    """A feed cursor whose following changes are no longer stored: reading on from it would miss them."""

    def __init__(self, *, since: int, stored_from: int, domain: str | None) -> None:
        of_domain = f" of {domain}" if domain else ""
        export = f"recrawl export {domain or 'DOMAIN'}"
        super().__init__(
            f"changes{of_domain} after cursor {since} are no longer stored, only those after {stored_from}: export all "
            f"pages again with {export}, which returns a new cursor, or continue with --since {stored_from} and skip "
            f"the changes in between"
        )
        self.since, self.stored_from, self.domain = since, stored_from, domain


class CursorAhead(BadInput):
    """A cursor beyond the end of the feed, such as one from another database."""

    def __init__(self, *, since: int, end: int) -> None:
        super().__init__(
            f"the feed ends at {end}, before cursor {since}: the cursor probably belongs to another database or to a"
            " newer copy of this one; export all pages again with recrawl export DOMAIN, which returns a new cursor"
        )
        self.since, self.end = since, end


class LeaseLost(CrawlerError):
    """The lease has expired and another worker has taken over, so the former holder must write nothing."""


class StackFailed(CrawlerError):
    """The local stack, or a server that it needs, cannot be started, stopped or used."""


def find_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first CrawlerError of the group, or the group itself if it contains none."""
    ours = group.subgroup(CrawlerError)
    while ours is not None:
        first = ours.exceptions[0]
        if not isinstance(first, BaseExceptionGroup):
            return first
        ours = first
    return group
