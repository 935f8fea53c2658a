"""The options and help of the commands about scheduling."""

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli import values
from crawler.cli.options import DomainName, Json

app = typer.Typer(no_args_is_help=True, help="Measure revisit policies on a virtual web with a virtual clock.")


def parse_part(text: str) -> float:
    """Parse a share, which may exceed 1: 3% or 0.03."""
    number = values.parse_positive_option(text.removesuffix("%").strip())
    return number / 100 if text.endswith("%") else number


Budgets = Annotated[
    list[float] | None,
    typer.Option(
        "--budget",
        parser=parse_part,
        metavar="SHARE",
        help="Requests per day, as a share of the pages: 3% or 0.03; can be repeated.",
    ),
]
Traces = Annotated[
    list[Path] | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Trace to replay: CSV page,changed_at or JSONL; can be repeated.",
    ),
]
Seeds = Annotated[
    int, typer.Option(min=1, max=1000, metavar="N", help="Number of worlds to draw; errors come from their spread.")
]
Jobs = Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Number of processes.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed.")]
Figures = Annotated[
    Path | None, typer.Option(file_okay=False, metavar="FOLDER", help="Write the charts to this folder as SVG.")
]


@app.command()
def run(
    worlds: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORLD", help="Worlds (see --list), or 'all'. Default: log-normal."),
    ] = None,
    budget: Budgets = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Policy to run (see --list); can be repeated. Default: all."),
    ] = None,
    trace: Traces = None,
    pages: Annotated[int, typer.Option(min=10, max=1_000_000, metavar="N", help="Pages of a generated world.")] = 2000,
    days: Annotated[
        int, typer.Option(min=20, max=36_500, metavar="N", help="Virtual days; the second half counts.")
    ] = 1000,
    seeds: Seeds = 3,
    jobs: Jobs = 1,
    figures: Figures = None,
    list_names: Annotated[bool, typer.Option("--list", help="List worlds and policies and exit.")] = False,
    as_json: Json = False,
) -> int:
    """Run revisit policies in worlds whose truth is known, and compare them with the optimum.

    Freshness is the share of time in which copies are current, weighted by importance. The ratio is relative to the
    clairvoyant optimum, which knows every page's true rate. `ours`, the product's rule, knows none at the start.

    Examples:
        python -m labs run
        python -m labs run drift hosts --budget 3% --seeds 5
        python -m labs run log-normal --pages 10000 --budget 1% --budget 10% --policy ours --policy uniform
        python -m labs run --trace changes.csv --budget 5% --figures figures
        python -m labs run --list

    """
    from labs.experiments.cli import compare

    if list_names:
        return compare.names(as_json=as_json)
    return compare.run(
        compare.LabRequest(
            worlds=tuple(worlds or ()),
            shares=tuple(budget or ()),
            policies=tuple(policy or ()),
            traces=tuple(trace or ()),
            pages=pages,
            days=days,
            seeds=seeds,
            jobs=jobs,
        ),
        figures=figures,
        as_json=as_json,
    )


@app.command()
def mechanisms(
    worlds: Annotated[
        list[str] | None, typer.Argument(metavar="WORLD", help="Worlds. Default: all that differ.")
    ] = None,
    budget: Budgets = None,
    trace: Traces = None,
    pages: Annotated[int, typer.Option(min=10, max=1_000_000, metavar="N", help="Pages of a generated world.")] = 600,
    days: Annotated[
        int, typer.Option(min=20, max=36_500, metavar="N", help="Virtual days; the second half counts.")
    ] = 400,
    seeds: Seeds = 3,
    jobs: Jobs = 1,
    as_json: Json = False,
) -> int:
    """Measure the effect of each mechanism of the product's rule: compare the rule with and without it.

    `plain` has exact updates of each page's rate that fade over a year, one prior for all pages, and selection by
    value; `uniform` is round robin. Budgets are 1, 3, 10 and 30 % of the pages per day by default.

    Examples:
        python -m labs mechanisms --jobs 2
        python -m labs mechanisms equal log-normal --pages 100 --budget 3%

    """
    from labs.experiments.cli import compare
    from labs.experiments.cli import mechanisms as command

    return command.switched_off(
        compare.LabRequest(
            worlds=tuple(worlds or (() if trace else command.WORLDS)),
            shares=tuple(budget or command.SHARES),
            policies=command.COMPARED,
            traces=tuple(trace or ()),
            pages=pages,
            days=days,
            seeds=seeds,
            jobs=jobs,
        ),
        as_json=as_json,
    )


@app.command()
def replay_domain(
    domain: DomainName,
    budget: Annotated[
        list[float] | None,
        typer.Option(
            parser=values.parse_positive_option,
            metavar="N",
            help="Requests per day; can be repeated. Default: around the number that was sent.",
        ),
    ] = None,
    seeds: Seeds = 3,
    jobs: Jobs = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Replay a domain's recorded visits: what if it had been crawled with another budget or by another rule?

    Between visits that found no change there was none. If a visit found a change, its time is drawn at random, as are
    changes that no visit could detect, so results differ by seed.

    Examples:
        python -m labs replay-domain docs.example.com
        python -m labs replay-domain docs.example.com --budget 50 --budget 500 --seeds 10

    """
    from labs.experiments.cli import replay

    return replay.replay(domain, budgets=tuple(budget or ()), seeds=seeds, jobs=jobs, figures=figures, as_json=as_json)


@app.command()
def dai(
    visits: Annotated[int, typer.Option(min=4, max=1000, metavar="N", help="Visits per page.")] = 60,
    pages: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="Pages for each period.")] = 100,
    seed: Seed = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Repeat Dai's experiment: how fast revisits by similarity find a page's period, and what they save.

    It uses generated texts of which each change replaces a random share, their real SimHashes, and the policy of
    `domains set --revisit similarity`. It is compared with one fixed period for all pages and with the default
    policy, at as many visits.

    Examples:
        python -m labs dai
        python -m labs dai --visits 100 --figures figures

    """
    from labs.experiments.cli import rates

    return rates.revisit_periods(visits=visits, pages=pages, seed=seed, figures=figures, as_json=as_json)


@app.command()
def estimator(
    pages: Annotated[int, typer.Option(min=100, max=1_000_000, metavar="N", help="Pages for each row.")] = 5000,
    seed: Seed = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Measure how well change rates are estimated from visits that only find changed or unchanged.

    Examples:
        python -m labs estimator
        python -m labs estimator --pages 20000 --json

    """
    from labs.experiments.cli import rates

    return rates.estimates(pages=pages, seed=seed, figures=figures, as_json=as_json)


@app.command()
def kinds(
    budget: Budgets = None,
    domains: Annotated[int, typer.Option(min=4, max=1000, metavar="N", help="New domains, equally of all kinds.")] = 50,
    pages: Annotated[int, typer.Option(min=2, max=10_000, metavar="N", help="Pages of each domain.")] = 40,
    days: Annotated[int, typer.Option(min=5, max=1000, metavar="N", help="Virtual days; all of them count.")] = 30,
    older: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Earlier domains of each kind.")] = 5,
    seeds: Seeds = 10,
    as_json: Json = False,
) -> int:
    """Measure the value of knowing a new domain's kind of site: how fresh its pages are in the first month.

    Kinds (.gov, .edu, .org, .com) differ in the change rates of their pages. What is known of them was learned from
    earlier domains with the functions that planning uses.

    Examples:
        python -m labs kinds
        python -m labs kinds --budget 5% --days 90 --older 20 --seeds 3

    """
    from labs.experiments.cli import kinds as command
    from labs.experiments.kinds import Trial

    trial = Trial(domains=domains, pages=pages, days=days, older=older)
    return command.first_month(trial, tuple(budget or ()), seeds=seeds, as_json=as_json)


@app.command()
def signals(
    budget: Budgets = None,
    pages: Annotated[int, typer.Option(min=10, max=100_000, metavar="N", help="Pages of a world.")] = 800,
    days: Annotated[
        int, typer.Option(min=20, max=36_500, metavar="N", help="Virtual days; the second half counts.")
    ] = 500,
    seeds: Seeds = 2,
    as_json: Json = False,
) -> int:
    """Measure the effect of sources of change signals (sitemaps, feeds, hints), reliable and unreliable ones.

    The product's rule uses one source, of which it knows nothing at first, and is compared with the rule without
    signals.

    Examples:
        python -m labs signals
        python -m labs signals --pages 200 --days 200 --seeds 1 --json

    """
    from labs.experiments.cli import signals as command
    from labs.experiments.signals import SignalTrial

    return command.signals(SignalTrial(pages=pages, days=days), tuple(budget or ()), seeds=seeds, as_json=as_json)
