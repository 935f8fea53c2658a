"""The few ways in which recrawl itself can fail; what the web does wrong is a value, never one of these."""


class CrawlerError(Exception):
    """Something that the user can mend; the message says what happened and what to do next, in one line."""


class BadInput(CrawlerError):
    """What the user gave cannot be used: a URL, a pattern, an instant, a name nobody registered."""


class PluginBroken(CrawlerError):
    """A plugin that is named is not installed, cannot be loaded, or is not what its extension point asks for."""


class StoreUnavailable(CrawlerError):
    """The database cannot be reached or refuses to answer; nothing that was recorded is lost."""


class CursorTooOld(CrawlerError):
    """Changes after a cursor of the feed are not kept any more: reading on from there would miss them."""

    def __init__(self, *, since: int, stored_from: int, domain: str | None) -> None:
        of_domain = f" of {domain}" if domain else ""
        export = f"recrawl export {domain or 'DOMAIN'}"
        super().__init__(
            f"changes{of_domain} after cursor {since} are not kept any more, only those after {stored_from}: "
            f"take all pages anew"
            f" with {export}, which ends with a cursor, or read on with --since {stored_from} and miss what was between"
        )
        self.since, self.stored_from, self.domain = since, stored_from, domain


class CursorAhead(BadInput):
    """A cursor that lies beyond the end of the feed: nothing that is read behind it would be what follows it."""

    def __init__(self, *, since: int, end: int) -> None:
        super().__init__(
            f"the feed ends at {end}, so that nothing can be after cursor {since}: that is of another database, most"
            " likely, or of a newer copy of this one; take all pages anew with recrawl export DOMAIN, which ends with a"
            " cursor"
        )
        self.since, self.end = since, end


class LeaseLost(CrawlerError):
    """Another worker holds the domain now, so nothing of this batch may be written."""


class StackFailed(CrawlerError):
    """Something of the local stack cannot be started or stopped: a port, the disk, another version, other files."""


def find_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What a caller can do something about among failures that happened at once: one of ours, or else the group."""
    ours = group.subgroup(CrawlerError)
    while ours is not None:
        first = ours.exceptions[0]
        if not isinstance(first, BaseExceptionGroup):
            return first
        ours = first
    return group
