"""A small changing website: every page is a function of the site, the path and the instant, and its truth is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from labs.demo.site.prose import TOPICS
from labs.demo.site.sheet import Behaviour, Serving, Sheet, SheetKind

ROBOTS_PATH = "/robots.txt"
DISALLOWED = "/private/"
CALENDAR = "/calendar/"
CHAIN = ("/go/1", "/go/2", "/go/3")  # each redirects to the next, the last to an article
CHAIN_STATUSES = (301, 302, 308)


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """All sheets of the site.

    start: the first instant of the story.  end: nothing changes after it, except clocks.
    sheets_by_path: by their first path.  moved_by_path: moved sheets by their new path.
    chain_end: where the redirect chain leads.
    """

    seed: int
    start: datetime
    end: datetime
    sheets_by_path: Mapping[str, Sheet]
    moved_by_path: Mapping[str, Sheet]
    chain_end: str

    def paths(self, at: datetime) -> tuple[str, ...]:
        """Return what a polite crawler can find at that instant through links from the home page, sorted.

        It omits the disallowed section, the endless calendar and the hops of the redirect chain, which have no content.
        """
        here = [path for path in self.sheets_by_path if not path.startswith(DISALLOWED) and self.exists(path, at)]
        return tuple(sorted(here + [path for path in self.moved_by_path if self.exists(path, at)]))

    def find(self, path: str) -> Sheet | None:
        """Return the sheet that is at the path at any time."""
        return self.sheets_by_path.get(path) or self.moved_by_path.get(path) or self._month(path)

    def sheet(self, path: str) -> Sheet:
        """Return the sheet of a path. Raise KeyError if there never is one."""
        found = self.find(path)
        if found is None:
            raise KeyError(path)
        return found

    def exists(self, path: str, at: datetime) -> bool:
        """Return whether the path has content. A page that responds with 500 for a while exists."""
        sheet = self.find(path)
        if sheet is None:
            return False
        if path == sheet.path:
            return sheet.is_there(at)
        return sheet.until is not None and sheet.until <= at

    def behaviour(self, path: str) -> Behaviour:
        return self.sheet(path).behaviour

    def serving(self, path: str) -> Serving:
        return self.sheet(path).serving

    def rate_per_day(self, path: str) -> float:
        """Return the expected content changes per day between start and end. Clocks and tokens do not count."""
        return self.sheet(path).rate_per_day

    def changes(self, path: str, since: datetime, until: datetime) -> tuple[datetime, ...]:
        """Return the instants in (since, until] at which the content changed."""
        sheet = self.sheet(path)
        return sheet.changes[sheet.version(since) : sheet.version(until)]

    def version(self, path: str, at: datetime) -> int:
        """Return how often the content has changed up to and including an instant; equal numbers mean equal content."""
        return self.sheet(path).version(at)

    def is_same(self, path: str, one: datetime, other: datetime) -> bool:
        """Return whether a copy of one instant is current at another, including absence."""
        here = self.exists(path, one)
        return here == self.exists(path, other) and (not here or self.version(path, one) == self.version(path, other))

    def _month(self, path: str) -> Sheet | None:
        """Return a month of the endless calendar, which is a trap for crawlers that follow every link."""
        if first_of(path) is None:
            return None
        return Sheet(
            path=path,
            kind=SheetKind.PLAIN,
            title=f"Calendar, {path.removeprefix(CALENDAR).rstrip('/')}",
            topic=TOPICS[0].name,
            behaviour=Behaviour.STEADY,
            serving=Serving.NONE,
            written=self.start,
            links=(month_after(path),),
        )


def first_of(path: str) -> datetime | None:
    """Return the first day of a calendar page's month, or None if the path is not a calendar page."""
    name = path.removeprefix(CALENDAR).removesuffix("/")
    try:
        day = datetime.strptime(name, "%Y-%m").replace(tzinfo=UTC)
    except ValueError:
        return None
    return day if path == month_path(day) else None


def month_path(day: datetime) -> str:
    return f"{CALENDAR}{day:%Y-%m}/"


def month_after(path: str) -> str:
    """Return the calendar page after this one; the last month of the year 9999 links to itself."""
    day = first_of(path)
    assert day is not None
    years, month = divmod(day.month, 12)
    return path if day.year + years > 9999 else month_path(day.replace(year=day.year + years, month=month + 1))
