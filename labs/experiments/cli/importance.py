"""The measurements of `python -m labs` about importance."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crawler.cli.output import print_json
from crawler.cli.plot import show_plots
from crawler.cli.session import DONE
from crawler.format.values import format_share
from labs.charts import write_figures
from labs.experiments import nutch, trials
from labs.experiments.cli import curves
from labs.experiments.cli.shown import (
    about,
    show_beside,
    show_coverages,
    show_curves,
    show_graph,
    show_interpolation,
    show_reaction,
    show_rounds,
    show_standings,
)
from labs.experiments.cli.subject import Subject, parse_members, parse_policy
from labs.experiments.discovery import Way, best_of_all, cover, mean_of
from labs.experiments.opic import SelectionOrder
from labs.experiments.trials import LabRun
from labs.progress import Visits

RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
POLICIES = (
    *("interpolation", "variable:1", "variable:4", "variable:8", "variable:16"),
    *("fixed:24", "improved:24", "blocks:24", "blocks:36"),
)
INTERPOLATION_PASSES = 40  # two windows of the clock before the change, two after it
REACTION_PASSES = 40  # about three and a half windows of the clock
RANDOM_SEEDS = 5  # whose mean is shown


@dataclass(frozen=True, slots=True)
class OpicRequest:
    """The options of an experiment with OPIC; see `python -m labs opic`."""

    passes: int
    selections: Sequence[str] | None
    window: str
    batch: int
    root_cash: float
    virtual_page_share: float
    reaction: bool
    interpolation: bool


def opic(subject: Subject, request: OpicRequest, *, figures: Path | None, as_json: bool) -> int:
    policy, chosen = parse_policy(request.window), parse_members(SelectionOrder, request.selections, "selection")
    graph = subject.graph()
    total = request.passes * len(chosen) + 2 * (request.passes + REACTION_PASSES) * request.reaction
    total += INTERPOLATION_PASSES * request.interpolation
    with Visits(total * graph.pages) as progress:
        trial = LabRun(
            graph,
            request.passes,
            subject.seed,
            policy=policy,
            batch=request.batch,
            root_cash=request.root_cash,
            virtual_page_share=request.virtual_page_share,
            progress=progress.count,
        )
        lines = [trials.converge(trial, each) for each in chosen]
        reacted = trials.react(trial, chosen[0], after=REACTION_PASSES) if request.reaction else None
        followed = trials.interpolate(trial, passes=INTERPOLATION_PASSES) if request.interpolation else None
    by_label = {line.label: line for line in lines}
    compared = trials.beside(by_label["random"], by_label["greedy"]) if {"random", "greedy"} <= set(by_label) else ()
    charts = curves.of_factors(subject.title, lines, compared)
    lines.append(trials.offline_curve(graph, passes=request.passes, virtual_page_share=request.virtual_page_share))
    charts = [
        *curves.of_errors(subject.title, lines, reacted),
        *charts,
        *curves.of_interpolation(subject.title, followed),
    ]
    if as_json:
        document = {
            "graph": about(subject, graph),
            "window": str(policy),
            "virtual_page_share": request.virtual_page_share,
        }
        measured = {"curves": lines, "random_beside_greedy": compared, "reaction": reacted, "interpolation": followed}
        print_json(document | measured)
    else:
        show_graph(
            subject,
            graph,
            ("Window", str(policy)),
            ("Virtual page", f"{format_share(request.virtual_page_share)} of a visit"),
        )
        show_curves(lines)
        if compared:
            show_beside(compared)
        if reacted:
            show_reaction(reacted)
        if followed:
            show_interpolation(followed)
        show_plots(charts)
    write_figures(charts, figures)
    return DONE


def windows(
    subject: Subject,
    *,
    passes: int,
    policies: Sequence[str] | None,
    rates: Sequence[float] | None,
    figures: Path | None,
    as_json: bool,
) -> int:
    wanted = [parse_policy(text) for text in policies or POLICIES]
    graph = subject.graph()
    changing = sorted(rates or RATES)
    with Visits(len(changing) * (trials.WARM_UP + passes) * graph.pages) as progress:
        trial = LabRun(graph, passes, subject.seed, progress=progress.count)
        standings = [standing for rate in changing for standing in trials.live(trial, wanted, rate=rate)]
    charts = curves.of_windows(subject.title, standings)
    if as_json:
        print_json({"graph": about(subject, graph), "standings": standings})
    else:
        show_graph(subject, graph)
        show_standings(standings)
        show_plots(charts)
    write_figures(charts, figures)
    return DONE


def discovery(
    subject: Subject,
    *,
    limit: float,
    ways: Sequence[str] | None,
    batch: int,
    root_cash: float,
    figures: Path | None,
    as_json: bool,
) -> int:
    chosen = parse_members(Way, ways, "way")
    graph = subject.graph()
    max_pages = max(round(limit * graph.pages), 1)

    seeds = range(subject.seed, subject.seed + RANDOM_SEEDS)
    coverages = [
        mean_of(
            [cover(graph, way, max_pages=max_pages, seed=seed, claimed=batch, root_cash=root_cash) for seed in each]
        )
        for way in chosen
        for each in (seeds if way is Way.RANDOM else seeds[:1],)
    ]
    best = best_of_all(graph, max_pages=max_pages)
    charts = curves.of_discovery(subject.title, coverages)
    if as_json:
        print_json({"graph": about(subject, graph), "limit": max_pages, "coverages": coverages, "best": best})
    else:
        show_graph(
            subject,
            graph,
            ("Fetched", f"{max_pages:,} pages, {batch} at a time"),
            ("In the most important pages", format_share(best)),
        )
        show_coverages(coverages)
        show_plots(charts)
    write_figures(charts, figures)
    return DONE


def five_pages(*, rounds: int, as_json: bool) -> int:
    found, true = list(nutch.rounds(rounds)), nutch.truth()
    if as_json:
        print_json({"links": nutch.LINKS, "injected": nutch.INJECTED, "rounds": found, "truth": true})
    else:
        show_rounds(found, true)
    return DONE
