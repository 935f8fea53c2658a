"""Plots as SVG elements within a page: drawn by its style sheet, so that they follow its colours and need no script."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from crawler.format.axes import Axis, axis_over, format_mark

LEFT, RIGHT, TOP, BOTTOM = 40, 14, 26, 40  # pixels around the plot
MOST_DOTS = 60  # of a line; beyond, it goes without
CHARACTER = 6.6  # pixels of a letter, about


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a drawing, in pixels where its place is as wide; else it shrinks with all that is in it."""

    width: int
    height: int


ROOMY = Size(720, 270)
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


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over common axes, and what they are called. summary: what the plot says, for who cannot see it.

    low, high: of the upright axis; None for what the points need.  times: x is a time, in seconds since 1970.
    """

    title: str
    summary: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    low: float | None = None
    high: float | None = None
    times: bool = False
    x_range: tuple[float, float] | None = field(default=None)

    @property
    def dots(self) -> list[Dot]:
        return [dot for line in self.lines for dot in line.dots]


def drawn(plot: Plot, size: Size = ROOMY) -> Markup:
    """The plot as an svg element."""
    label = _plain(f"{plot.title}: {plot.summary}")
    role = "group" if any(dot.href for dot in plot.dots) else "img"  # a picture has nothing in it to go to
    svg = Element("svg", {"viewBox": f"0 0 {size.width} {size.height}", "role": role, "aria-label": label})
    frame = _Frame(plot, *_axes(plot), size)
    _draw_grid(svg, frame)
    for line in plot.lines:
        _draw_line(svg, frame, line)
    return Markup(tostring(svg, encoding="unicode"))  # noqa: S704  made of elements, so all text is escaped


@dataclass(frozen=True, slots=True)
class _Frame:
    plot: Plot
    x_axis: Axis
    y_axis: Axis
    size: Size

    @property
    def right(self) -> float:
        return self.size.width - RIGHT

    @property
    def bottom(self) -> float:
        return self.size.height - BOTTOM

    def x(self, value: float) -> float:
        return LEFT + self.x_axis.place(value) * (self.right - LEFT)

    def y(self, value: float) -> float:
        return TOP + (1 - self.y_axis.place(value)) * (self.bottom - TOP)


def _axes(plot: Plot) -> tuple[Axis, Axis]:
    xs, ys = [dot.x for dot in plot.dots], [dot.y for dot in plot.dots]
    y_axis = axis_over(ys)
    if plot.low is not None or plot.high is not None:
        low = y_axis.low if plot.low is None else plot.low
        y_axis = Axis(low, max(y_axis.high if plot.high is None else plot.high, low + 1e-9))
    if plot.x_range is not None:
        return Axis(*plot.x_range), y_axis
    if plot.times and xs:
        return Axis(min(xs), max(*xs, min(xs) + 1)), y_axis
    return axis_over(xs, log=plot.log_x), y_axis


def _draw_grid(svg: Element, frame: _Frame) -> None:
    left, right, bottom = LEFT, frame.right, frame.bottom
    for mark in frame.y_axis.marks():
        y = frame.y(mark)
        SubElement(svg, "path", {"class": "grid", "d": f"M{left} {y:.1f}H{right}"})
        _text(svg, format_mark(mark), x=left - 8, y=y + 4, anchor="end")
    for x, words in _spaced(_x_marks(frame)):
        SubElement(svg, "path", {"class": "tick", "d": f"M{x:.1f} {bottom}v4"})
        _text(svg, words, x=x, y=bottom + 17, anchor="middle")
    SubElement(svg, "path", {"class": "axis", "d": f"M{left} {bottom}H{right}"})
    _text(svg, frame.plot.x_label, x=right, y=bottom + 35, anchor="end")
    _text(svg, frame.plot.y_label, x=0, y=12, anchor="start")


def _x_marks(frame: _Frame) -> Iterator[tuple[float, str]]:
    if not frame.plot.times:
        yield from ((frame.x(mark), format_mark(mark)) for mark in frame.x_axis.marks())
        return
    for at, words in time_marks(frame.x_axis.low, frame.x_axis.high):
        yield frame.x(at), words


def _spaced(marks: Iterator[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """The marks without those whose words would touch the ones before."""
    end = float("-inf")
    for x, words in marks:
        half = len(words) * CHARACTER / 2
        if x - half > end + 2 * CHARACTER:
            yield x, words
            end = x + half


STEPS = (
    *(timedelta(minutes=n) for n in (1, 5, 15, 30)),
    *(timedelta(hours=n) for n in (1, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 14, 30, 90, 365)),
)
MOST_TIMES = 8


def time_marks(low: float, high: float) -> Iterator[tuple[float, str]]:
    """Round instants between two, in seconds since 1970, with the words for them (UTC)."""
    length = high - low
    step = next((each for each in STEPS if length / each.total_seconds() <= MOST_TIMES), STEPS[-1]).total_seconds()
    first = -(-low // step) * step
    while first <= high:
        at = datetime.fromtimestamp(first, UTC)
        yield first, f"{at:%H:%M}" if step < 86_400 and (at.hour or at.minute) else f"{at.day} {at:%b}"
        first += step


def _draw_line(svg: Element, frame: _Frame, line: Line) -> None:
    group = SubElement(svg, "g", {"class": f"line {line.style}"})
    if line.bar:
        _draw_bars(group, frame, line)
        return
    places = [(frame.x(dot.x), frame.y(dot.y)) for dot in line.dots]
    if line.joined and len(places) > 1:
        SubElement(group, "path", {"d": "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)})
    if line.joined and len(places) > MOST_DOTS:
        return
    for dot, (x, y) in zip(line.dots, places, strict=True):
        above = group
        if dot.href:  # for a pointer: a table beside the plot has the pages that matter, for the keyboard
            above = SubElement(group, "a", {"href": dot.href, "tabindex": "-1", "aria-label": _plain(dot.tells)})
        circle = SubElement(above, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "3.5"})
        if dot.tells:
            SubElement(circle, "title").text = _plain(dot.tells)


def _draw_bars(group: Element, frame: _Frame, line: Line) -> None:
    ground = frame.y(max(frame.y_axis.low, 0.0))
    for dot in line.dots:
        left, right, top = max(frame.x(dot.x), LEFT), min(frame.x(dot.x + line.bar), frame.right), frame.y(dot.y)
        size = {"width": f"{max(right - left - 1, 1):.1f}", "height": f"{max(ground - top, 0):.1f}"}
        bar = SubElement(group, "rect", {"x": f"{left:.1f}", "y": f"{top:.1f}", **size})
        SubElement(bar, "title").text = _plain(dot.tells)


def _text(svg: Element, words: str, *, x: float, y: float, anchor: str) -> None:
    SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}).text = _plain(words)


def _plain(words: str) -> str:
    """The words without characters that no XML may have."""
    return "".join(c if c.isprintable() else "\ufffd" for c in words)
