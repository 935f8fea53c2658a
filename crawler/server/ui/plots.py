"""The data and layout of plots; templates/plot.svg draws them, and the style sheet sets their colors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from crawler.format.axes import Axis, format_tick, make_axis

LEFT, RIGHT, TOP, BOTTOM = 40, 14, 26, 40  # pixels around the plot
CHARACTER_WIDTH = 6.6  # pixels, on average


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a drawing in pixels. Browsers scale the drawing down where less space is available."""

    width: int
    height: int


WIDE = Size(720, 270)
NARROW = Size(340, 170)  # for cards and phones


@dataclass(frozen=True, slots=True)
class Dot:
    """One point. label: its tooltip.  href: the address that it links to."""

    x: float
    y: float
    label: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Points in order of x. style: a class of the style sheet (main, target, found, today, dots).

    joined: whether a line connects the points.  stepped: in steps, since each value holds until the next one; points
    without a label are then not drawn.  bar: the width of a bar per point, in units of x; 0 for dots.
    """

    label: str
    dots: tuple[Dot, ...]
    style: str = "main"
    joined: bool = True
    stepped: bool = False
    bar: float = 0.0

    @property
    def has_dots(self) -> bool:
        """Whether the points are drawn; on a long line they would hide it."""
        return not self.joined or len(self.dots) <= 60


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over common axes. summary: the text alternative for screen readers.

    low, high, x_range: the ranges of the y and x axes; None to fit the points.  has_times: whether x is a time, in
    seconds since 1970.
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
    """The positions of a plot's points on a drawing, in pixels."""

    plot: Plot
    x_axis: Axis
    y_axis: Axis
    size: Size
    left: int = LEFT

    @property
    def role(self) -> str:
        return "group" if any(dot.href for dot in self.plot.dots) else "img"  # an img cannot contain links

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
        """Return left, top, width and height of a bar, which starts at zero."""
        ground, top = self.y(max(self.y_axis.low, 0.0)), self.y(dot.y)
        left, right = max(self.x(dot.x), LEFT), min(self.x(dot.x + length), self.right)
        return left, top, max(right - left - 1, 1), max(ground - top, 0)

    def x_marks(self) -> Iterator[tuple[float, str]]:
        """Yield the marks of the x axis with their labels, without those whose labels would overlap."""
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
    """Return the layout that fits all points of a plot."""
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


def list_time_marks(low: float, high: float) -> Iterator[tuple[float, str]]:
    """Yield round times from low to high, in seconds since 1970, with their labels (UTC)."""
    length = high - low
    steps = [each.total_seconds() for each in TIME_STEPS]
    step = next((each for each in steps if length / each <= 8), steps[-1])
    first = -(-low // step) * step
    while first <= high:
        at = datetime.fromtimestamp(first, UTC)
        yield first, f"{at:%H:%M}" if step < 86_400 and (at.hour or at.minute) else f"{at.day} {at:%b}"
        first += step
