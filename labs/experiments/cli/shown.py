"""The tables of `python -m labs`."""

from collections.abc import Mapping, Sequence

from crawler.cli.output import say, show_facts, show_table
from crawler.format.values import format_share
from labs.experiments.cli.subject import Subject
from labs.experiments.discovery import Coverage
from labs.experiments.fixpoint import Errors
from labs.experiments.graph import Graph
from labs.experiments.interpolation import Interpolation
from labs.experiments.nutch import INJECTED, LINKS, Round
from labs.experiments.trials import Beside, Curve, Ranking, Reaction

MAX_ROWS = 10  # of a table with one row per pass
ERROR_COLUMNS = ("error, all", "error, top tenth", "Spearman")


def format_errors(errors: Errors) -> tuple[str, str, str]:
    """Return the cells of ERROR_COLUMNS."""
    return format_share(errors.every), format_share(errors.top), f"{errors.spearman:.4f}"


def about(subject: Subject, graph: Graph) -> dict[str, object]:
    """Return the facts about the graph for --json."""
    return {"name": subject.name, "pages": graph.pages, "links": graph.links, "seed": subject.seed}


def show_graph(subject: Subject, graph: Graph, *more: tuple[str, str]) -> None:
    """Show the graph, and other parameters of the measurement."""
    show_facts([("Graph", f"{subject.name}: {graph.pages:,} pages, {graph.links:,} links"), *more])
    say("")


def show_curves(curves: Sequence[Curve]) -> None:
    """Show the end of each curve."""
    columns = ("visits per page", "windows", "error factor", *ERROR_COLUMNS)
    ends = [(curve, curve.points[-1]) for curve in curves]
    rows = [
        (
            curve.label,
            f"{end.visits:.0f}",
            f"{end.windows:.1f}",
            format_share(end.error_factor),
            *format_errors(end.errors),
        )
        for curve, end in ends
    ]
    show_table(["selection", *columns], rows, right=columns)


def show_beside(compared: Sequence[Beside]) -> None:
    """Show how much larger the error of random choice is than that of greedy choice."""
    columns = ("visits per page", "error factor", "error, all", "error, top tenth")
    step = max(len(compared) // MAX_ROWS, 1)
    rows = [
        (f"{each.visits:.0f}", *(f"{number:.1f} times" for number in (each.factor, each.every, each.top)))
        for each in compared[step - 1 :: step]
    ]
    say("")
    say("Random compared with greedy:")
    show_table(columns, rows, right=columns)


def show_interpolation(followed: Interpolation) -> None:
    """Show how well interpolation estimates a window from two numbers per page."""
    end = followed.moments[-1]
    worst, left = format_share(followed.at_worst), format_share(end.apart)
    facts = [
        (
            "Interpolation compared with the exact window",
            f"{format_share(followed.at_rest)} apart before, mean of all pages",
        ),
        (
            "After replacing a tenth of the links",
            f"at most {worst}, {left} at the end",
        ),
        ("The page that gains most", f"importance {followed.before:.2f} before, {followed.after:.2f} after"),
    ]
    say("")
    show_facts(facts)


def show_standings(standings: Sequence[Ranking]) -> None:
    """Show the error of each window at each rate of change."""
    columns = ["pages that change per pass", "window", "numbers per page", *ERROR_COLUMNS]
    rows = [(format_share(s.rate), s.policy, f"{s.numbers:.1f}", *format_errors(s.errors)) for s in standings]
    show_table(columns, rows, right=set(columns) - {"window"})


def show_coverages(coverages: Sequence[Coverage]) -> None:
    """Show how much importance each way had found at three points in time."""
    columns = ("after a quarter", "after half", "at the limit")
    rows = [(c.way.value, *(format_share(c.after(part)) for part in (0.25, 0.5, 1.0))) for c in coverages]
    show_table(["way", *columns], rows, right=columns)


def show_reaction(reacted: Reaction) -> None:
    """Show how the error recovered."""
    back, first = reacted.windows_until_back, reacted.points[0]
    at_once = f"error {format_share(reacted.before.every)} before, {format_share(first.errors.every)} at once"
    facts = [
        ("After replacing a tenth of the links", at_once),
        ("Remaining error increase after one window", format_share(reacted.left_after(1.0))),
        ("After two windows", format_share(reacted.left_after(2.0))),
        ("Recovered", f"after {back:.1f} windows" if back is not None else "not yet"),
    ]
    say("")
    show_facts(facts)


def show_rounds(rounds: Sequence[Round], true: Mapping[str, float]) -> None:
    """Show Nutch's scores, and below them the importance that OPIC derives from the same visits."""
    names = list(LINKS)
    say("Links: " + "; ".join(f"{page} to {', '.join(links)}" for page, links in LINKS.items() if links))
    say(f"{INJECTED} is injected. One page is visited in each round; * marks the visited ones.")
    say("")
    show_table(["round", "visits", *(f"{name}: Nutch" for name in names)], map(_scores, rounds), right=["round"])
    say("")
    truth = ("truth", "", *(f"{true[name]:.2f}" for name in names))
    cells = ["round", "visits", *(f"{name}: OPIC" for name in names)]
    show_table(cells, [*map(_importances, rounds), truth], right=["round"])


def _scores(each: Round) -> tuple[str, ...]:
    marked = {page: f"{score:,.4g}{'*' if page in each.read else ''}" for page, score in each.scores.items()}
    return (str(each.number), each.reads, *(marked.get(page, "-") for page in LINKS))


def _importances(each: Round) -> tuple[str, ...]:
    cells = {page: f"{importance:.2f}" for page, importance in each.importance.items()}
    return (str(each.number), each.reads, *(cells.get(page, "-") for page in LINKS))
