"""What the plots of the pages show, and where on them: templates/plot.svg draws it, the style sheet colours it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from crawler.format.axes import Axis, format_tick, make_axis

LEFT, RIGHT, TOP, BOTTOM = 40, 14, 26, 40  # pixels around the plot
MAX_DOTS = 60  # of a line; beyond, it goes without
CHARACTER_WIDTH = 6.6  # pixels of a letter, about


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a drawing, in pixels where its place is as wide; else it shrinks with all that is in it."""

    width: int
    height: int


WIDE = Size(720, 270)
NARROW = Size(340, 170)  # for a card, and for a phone


@dataclass(frozen=True, slots=True)
class Dot:
    """One point. tells: what it is, in words; with an address, it is a link there."""

    x: float
    y: float
    tells: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Points in order of x. style: of the style sheet: main, target, found, today, dots.

    joined: with a line.  bar: how wide a bar from the ground each point is, in units of x; 0 for points.
    """

    label: str
    dots: tuple[Dot, ...]
    style: str = "main"
    joined: bool = True
    bar: float = 0.0

    @property
    def has_dots(self) -> bool:
        """Whether its points are shown: in a long line they would hide it."""
        return not self.joined or len(self.dots) <= MAX_DOTS


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over common axes, and what they are called. summary: what the plot says, for who cannot see it.

    low, high: of the upright axis; None for what the points need.  has_times: x is a time, in seconds since 1970.
    """

    title: str
    summary: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    low: float | None = None
    high: float | None = None
    has_times: bool = False
    x_range: tuple[float, float] | None = field(default=None)

    @property
    def dots(self) -> list[Dot]:
        return [dot for line in self.lines for dot in line.dots]


@dataclass(frozen=True, slots=True)
class PlotLayout:
    """Where on a drawing the points of a plot stand, in pixels."""

    plot: Plot
    x_axis: Axis
    y_axis: Axis
    size: Size
    left: int = LEFT

    @property
    def role(self) -> str:
        return "group" if any(dot.href for dot in self.plot.dots) else "img"  # a picture has nothing in it to go to

    @property
    def right(self) -> float:
        return self.size.width - RIGHT

    @property
    def bottom(self) -> float:
        return self.size.height - BOTTOM

    def x(self, value: float) -> float:
        return LEFT + self.x_axis.normalize(value) * (self.right - LEFT)

    def y(self, value: float) -> float:
        return TOP + (1 - self.y_axis.normalize(value)) * (self.bottom - TOP)

    def bar(self, dot: Dot, length: float) -> tuple[float, float, float, float]:
        """Return left, top, width and height of a bar, which stands on the ground."""
        ground, top = self.y(max(self.y_axis.low, 0.0)), self.y(dot.y)
        left, right = max(self.x(dot.x), LEFT), min(self.x(dot.x + length), self.right)
        return left, top, max(right - left - 1, 1), max(ground - top, 0)

    def x_marks(self) -> Iterator[tuple[float, str]]:
        """Yield the marks with their words, but for those whose words would touch the ones before."""
        if self.plot.has_times:
            marks = list_time_marks(self.x_axis.low, self.x_axis.high)
        else:
            marks = ((mark, format_tick(mark)) for mark in self.x_axis.marks())
        end = float("-inf")
        for value, label in marks:
            x, half = self.x(value), len(label) * CHARACTER_WIDTH / 2
            if x - half > end + 2 * CHARACTER_WIDTH:
                yield x, label
                end = x + half


def compute_layout(plot: Plot, size: Size = WIDE) -> PlotLayout:
    """Return the frame that holds all points of a plot."""
    return PlotLayout(plot, *_choose_axes(plot), size)


def _choose_axes(plot: Plot) -> tuple[Axis, Axis]:
    xs, ys = [dot.x for dot in plot.dots], [dot.y for dot in plot.dots]
    y_axis = make_axis(ys)
    if plot.low is not None or plot.high is not None:
        low = y_axis.low if plot.low is None else plot.low
        y_axis = Axis(low, max(y_axis.high if plot.high is None else plot.high, low + 1e-9))
    if plot.x_range is not None:
        return Axis(*plot.x_range), y_axis
    if plot.has_times and xs:
        return Axis(min(xs), max(*xs, min(xs) + 1)), y_axis
    return make_axis(xs, is_log=plot.log_x), y_axis


TIME_STEPS = (
    *(timedelta(minutes=n) for n in (1, 5, 15, 30)),
    *(timedelta(hours=n) for n in (1, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 14, 30, 90, 365)),
)
MAX_TIME_MARKS = 8


def list_time_marks(low: float, high: float) -> Iterator[tuple[float, str]]:
    """Round instants between two, in seconds since 1970, with the words for them (UTC)."""
    length = high - low
    step = next(
        (each for each in TIME_STEPS if length / each.total_seconds() <= MAX_TIME_MARKS), TIME_STEPS[-1]
    ).total_seconds()
    first = -(-low // step) * step
    while first <= high:
        at = datetime.fromtimestamp(first, UTC)
        yield first, f"{at:%H:%M}" if step < 86_400 and (at.hour or at.minute) else f"{at.day} {at:%b}"
        first += step
