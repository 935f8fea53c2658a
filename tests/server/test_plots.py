"""Plots draw every point at its position and escape crawled text."""

from datetime import UTC, datetime
from xml.etree.ElementTree import fromstring

import pytest

from crawler.server.ui.plots import NARROW, WIDE, Dot, Line, Plot, Size, list_time_marks
from crawler.server.ui.templating import render_plot

DAY = 86_400.0


def plot(*dots: Dot, **given: object) -> Plot:
    lines = (Line("line", dots),)
    return Plot(title="Title", summary="the summary", x_label="x", y_label="y", lines=lines, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_points_are_inside_the_plot_and_in_order(size: Size) -> None:
    svg = fromstring(render_plot(plot(Dot(0, 0), Dot(1, 50), Dot(2, 100)), size))
    places = [(float(circle.attrib["cx"]), float(circle.attrib["cy"])) for circle in svg.iter("circle")]
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    assert all(0 <= x <= size.width and 0 <= y <= size.height for x, y in places)


def test_plot_has_a_text_alternative() -> None:
    svg = fromstring(render_plot(plot(Dot(1, 1))))
    assert (svg.attrib["role"], svg.attrib["aria-label"]) == ("img", "Title: the summary")
    linked = fromstring(render_plot(plot(Dot(1, 1, href="/page"))))
    assert linked.attrib["role"] == "group"


@pytest.mark.parametrize(
    "dots", [(), (Dot(0, 0),), (Dot(5, 5), Dot(5, 5)), (Dot(0, 0), Dot(1e-9, 1e12)), (Dot(1e9, 100), Dot(1e9, 100))]
)
@pytest.mark.parametrize("given", [{}, {"has_times": True}, {"low": 0.0, "high": 100.0}, {"low": 90.0, "high": 100.0}])
def test_any_points_can_be_drawn(dots: tuple[Dot, ...], given: dict[str, object]) -> None:
    assert "nan" not in render_plot(plot(*dots, **given))


def test_logarithmic_axis_spaces_powers_of_ten_evenly() -> None:
    svg = fromstring(render_plot(plot(Dot(1, 1), Dot(10, 2), Dot(100, 3), log_x=True)))
    one, two, three = (float(circle.attrib["cx"]) for circle in svg.iter("circle"))
    assert two - one == pytest.approx(three - two, abs=0.2)


def test_steps_hold_each_value_until_the_next_one() -> None:
    dots = (Dot(0, 44, label="44"), Dot(1, 39, label="39"), Dot(2, 39))
    steps = Plot(title="T", summary="", x_label="", y_label="", lines=(Line("l", dots, stepped=True),), low=0.0)
    svg = fromstring(render_plot(steps))
    (path,) = (each.attrib["d"] for each in svg.iter("path") if each.attrib["d"].count("V"))
    assert path.count("H") == 2
    assert len(list(svg.iter("circle"))) == 2


def test_crawled_text_is_escaped_in_a_plot() -> None:
    svg = render_plot(plot(Dot(1, 1, label='"><script>x</script>\x1b\x00', href='/page?url="><script>')))
    assert "<script" not in svg
    fromstring(svg)


def test_bars_start_at_zero_inside_the_plot() -> None:
    dots = (Dot(0.0, 3, label="a"), Dot(3600.0, 6, label="b"))
    bars = Plot(
        title="T", summary="", x_label="", y_label="", lines=(Line("l", dots, bar=3600.0),), low=0.0, has_times=True
    )
    one, two = fromstring(render_plot(bars)).iter("rect")
    ends = [float(bar.attrib["y"]) + float(bar.attrib["height"]) for bar in (one, two)]
    assert ends[0] == pytest.approx(ends[1])
    assert float(two.attrib["height"]) == pytest.approx(2 * float(one.attrib["height"]), abs=0.3)


@pytest.mark.parametrize("days", [0.001, 0.1, 1, 3, 30, 400, 4000])
def test_time_axis_has_few_round_marks(days: float) -> None:
    low = datetime(2026, 3, 1, 10, 17, tzinfo=UTC).timestamp()
    marks = list(list_time_marks(low, low + days * DAY))
    assert len(marks) <= 13
    assert all(low <= at <= low + days * DAY for at, _ in marks)
