"""A small web site that lives: every page a function of the site, the path and the instant, and its truth known."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from labs.demo.site.prose import TOPICS
from labs.demo.site.sheet import Behaviour, Serving, Sheet, SheetKind

ROBOTS_PATH = "/robots.txt"
DISALLOWED = "/private/"
CALENDAR = "/calendar/"
CHAIN = ("/go/1", "/go/2", "/go/3")  # each leads to the next, the last to an article
CHAIN_STATUSES = (301, 302, 308)


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """All sheets and what is true of them.

    start: the first instant of the story.  end: nothing happens after it, but clocks go on.
    sheets_by_path: each under its first path.  moved_by_path: the moved ones under their new path.
    chain_end: where the redirect chain leads.
    """

    seed: int
    start: datetime
    end: datetime
    sheets_by_path: Mapping[str, Sheet]
    moved_by_path: Mapping[str, Sheet]
    chain_end: str

    def paths(self, at: datetime) -> tuple[str, ...]:
        """What a polite crawler can find at that instant by links from the home page, sorted.

        Without the disallowed section, the endless calendar and the hops of the redirect chain, which have no content.
        """
        here = [path for path in self.sheets_by_path if not path.startswith(DISALLOWED) and self.exists(path, at)]
        return tuple(sorted(here + [path for path in self.moved_by_path if self.exists(path, at)]))

    def find(self, path: str) -> Sheet | None:
        """The sheet that has, had or will have its place at the path."""
        return self.sheets_by_path.get(path) or self.moved_by_path.get(path) or self._month(path)

    def sheet(self, path: str) -> Sheet:
        """The sheet of a path; KeyError where there never is one."""
        found = self.find(path)
        if found is None:
            raise KeyError(path)
        return found

    def exists(self, path: str, at: datetime) -> bool:
        """Whether content is served there. A page that answers 500 for a while exists."""
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
        """Expected content changes per day between start and end. Clocks and tokens are no content."""
        return self.sheet(path).rate_per_day

    def changes(self, path: str, since: datetime, until: datetime) -> tuple[datetime, ...]:
        """The instants in (since, until] at which the content changed."""
        sheet = self.sheet(path)
        return sheet.changes[sheet.version(since) : sheet.version(until)]

    def version(self, path: str, at: datetime) -> int:
        """How often the content has changed up to and including an instant; equal numbers are equal content."""
        return self.sheet(path).version(at)

    def is_same(self, path: str, one: datetime, other: datetime) -> bool:
        """Whether somebody who looked at one instant knows what is there at the other, absence included."""
        here = self.exists(path, one)
        return here == self.exists(path, other) and (not here or self.version(path, one) == self.version(path, other))

    def _month(self, path: str) -> Sheet | None:
        """A month of the calendar, which has no end: a trap for whoever follows every link."""
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
    """The first day of a calendar page's month, or None if the path is no calendar page."""
    name = path.removeprefix(CALENDAR).removesuffix("/")
    try:
        day = datetime.strptime(name, "%Y-%m").replace(tzinfo=UTC)
    except ValueError:
        return None
    return day if path == month_path(day) else None


def month_path(day: datetime) -> str:
    return f"{CALENDAR}{day:%Y-%m}/"


def month_after(path: str) -> str:
    """The calendar page after this one; the last month of the year 9999 is its own."""
    day = first_of(path)
    assert day is not None
    years, month = divmod(day.month, 12)
    return path if day.year + years > 9999 else month_path(day.replace(year=day.year + years, month=month + 1))
