"""The plot of the first page: how fresh each domain has been, against its target."""

from crawler.app.overview import DomainCard
from crawler.server.ui.plots import Dot, Line, Plot


def freshness_plot(card: DomainCard) -> Plot:
    """Freshness by importance over time, the target, and what audits of the window found, at its end."""
    found = [each for each in card.past if each.freshness is not None]
    points = tuple(
        Dot(
            each.at.timestamp(),
            100 * each.freshness,
            tells=f"{each.at.astimezone():%Y-%m-%d %H:%M}: {100 * each.freshness:.1f} % fresh",
        )
        for each in found
        if each.freshness is not None
    )
    lines = [Line("fresh, by importance", points)]
    target = card.report.target_freshness
    if target is not None and points:
        ends = (Dot(points[0].x, 100 * target), Dot(points[-1].x, 100 * target))
        lines.append(Line("target", ends, style="target"))
    audited = card.calibration.audits.found_fresh
    if audited is not None and points:
        dot = Dot(points[-1].x, 100 * audited, tells=f"audits found {100 * audited:.1f} % fresh")
        lines.append(Line("as audits found", (dot,), style="found", joined=False))
    least = min((dot.y for line in lines for dot in line.dots), default=0.0)
    return Plot(
        title="Freshness",
        summary=f"from {points[0].y:.1f} to {points[-1].y:.1f} per cent" if points else "no page has been read yet",
        x_label="time (UTC)",
        y_label="fresh, per cent",
        lines=tuple(lines),
        low=max(0.0, 10.0 * int(min(least, 89.0) // 10)),
        high=100.0,
        times=True,
    )
