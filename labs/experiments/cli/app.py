"""The options and help of `python -m labs`."""

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.options import Json
from labs.experiments.cli import time_app

app = typer.Typer(
    no_args_is_help=True, help="Experiments with the crawler's rules, replays of recorded sites, and the demo."
)

GraphName = Annotated[
    str,
    typer.Option(
        "--graph",
        metavar="power-law|FOLDER|DOMAIN",
        help="A generated web, a folder with HTML files, or a crawled domain.",
    ),
]
Pages = Annotated[int, typer.Option(min=10, max=100_000, metavar="N", help="Pages of the generated web.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed.")]
Figures = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also write the curves to this folder as SVG.")]

RootCash = Annotated[
    float,
    typer.Option(min=1, max=10_000, metavar="N", help="Endowments of page 0; all other pages have one."),
]


@app.command()
def opic(
    graph: GraphName = "power-law",
    pages: Pages = 10_000,
    passes: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Visits of each page, on average.")] = 10,
    selection: Annotated[
        list[str] | None,
        typer.Option(metavar="greedy|cycle|random", help="Which page is next; can be repeated. Default: all."),
    ] = None,
    window: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="Window of importance: interpolation:24, variable:8, fixed:16 or blocks:24."
        ),
    ] = "interpolation",
    batch: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Pages claimed at a time; 1 as published.")
    ] = 1,
    root_cash: RootCash = 100,
    virtual_page_share: Annotated[
        float, typer.Option(min=0.01, max=1, metavar="SHARE", help="Share of a visit's cash for the virtual page.")
    ] = 0.15,
    reaction: Annotated[
        bool,
        typer.Option("--reaction", help="Also show how the error recovers after a tenth of the links is replaced."),
    ] = False,
    interpolation: Annotated[
        bool,
        typer.Option("--interpolation", help="Also show how well interpolation reproduces the window (figure 1)."),
    ] = False,
    seed: Seed = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Compare the importance estimated from visits with the true importance, visit after visit.

    Figures 2 and 3 of Abiteboul, Preda and Cobena (WWW 2003): the error over all pages, and over the most important
    tenth; the error factor, 1 / G; and how much larger the error of random choice is than that of most cash first.
    Visits are settled and importance is estimated with the crawler's own code.

    Examples:
        python -m labs opic
        python -m labs opic --graph /usr/share/doc/python3/html --reaction
        python -m labs opic --graph docs.example.com --selection greedy --batch 100
        python -m labs opic --pages 100000 --figures figures/
        python -m labs opic --interpolation --virtual-page-share 0.3

    """
    from labs.experiments.cli import importance, subject

    return importance.opic(
        subject.Subject(graph, pages=pages, seed=seed),
        importance.OpicRequest(
            passes, selection, window, batch, root_cash, virtual_page_share, reaction, interpolation
        ),
        figures=figures,
        as_json=as_json,
    )


@app.command()
def windows(
    graph: GraphName = "power-law",
    pages: Pages = 10_000,
    passes: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Passes during which links change.")] = 16,
    window: Annotated[
        list[str] | None,
        typer.Option(metavar="POLICY", help="A policy such as variable:8; can be repeated. Default: one of each."),
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, metavar="SHARE", help="Share of the pages that change per pass; can be repeated."),
    ] = None,
    seed: Seed = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Compare windows of importance on a graph whose links keep changing, over the same greedy visits.

    Figures 4, 5 and 6 of Abiteboul, Preda and Cobena (WWW 2003): in every pass, a share of the pages gets twice or half
    as many links. Shown are the error by that share, and how many numbers each policy stores.

    Examples:
        python -m labs windows
        python -m labs windows --window interpolation --window variable:4 --window blocks:24 --rate 0.01
        python -m labs windows --pages 2000 --json

    """
    from labs.experiments.cli import importance, subject

    return importance.windows(
        subject.Subject(graph, pages=pages, seed=seed),
        passes=passes,
        policies=window,
        rates=rate,
        figures=figures,
        as_json=as_json,
    )


@app.command()
def discovery(
    graph: GraphName = "power-law",
    pages: Pages = 10_000,
    limit: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Share of the pages to fetch.")] = 0.1,
    way: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WAY",
            help="opic, breadth, depth, mixed, random or omniscient; can be repeated. Default: all.",
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Pages claimed at a time.")] = 10,
    root_cash: RootCash = 100,
    seed: Seed = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Compare the orders in which unfetched pages are fetched, by the importance of the first ones.

    Importance is that of the whole graph, by power iteration. All ways except random and omniscient are the crawler's
    own orders; omniscient always fetches the most important known page.
    Source: Baeza-Yates, Castillo, Marin and Rodriguez, "Crawling a country" (WWW 2005).

    Examples:
        python -m labs discovery
        python -m labs discovery --graph /usr/share/doc/python3/html --way opic --way breadth
        python -m labs discovery --graph docs.example.com --limit 0.25 --json

    """
    from labs.experiments.cli import importance, subject

    return importance.discovery(
        subject.Subject(graph, pages=pages, seed=seed),
        limit=limit,
        ways=way,
        batch=batch,
        root_cash=root_cash,
        figures=figures,
        as_json=as_json,
    )


@app.command()
def nutch(
    rounds: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Pages visited, one per round.")] = 5,
    as_json: Json = False,
) -> int:
    """Compare, on five pages, the scores of Nutch 0.9 with the importance that OPIC derives from the same visits.

    Examples:
        python -m labs nutch
        python -m labs nutch --rounds 50

    """
    from labs.experiments.cli import importance

    return importance.five_pages(rounds=rounds, as_json=as_json)


app.add_typer(time_app.app)
