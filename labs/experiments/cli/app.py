"""python -m labs: its options and its help."""

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.options import Json
from labs.experiments.cli import time_app

app = typer.Typer(
    no_args_is_help=True, help="Experiments with the crawler's own rules, replays of recorded sites, and the demo."
)

GraphName = Annotated[
    str,
    typer.Option(
        "--graph",
        metavar="power-law|FOLDER|DOMAIN",
        help="A made-up web, the HTML files of a folder, or a domain that was crawled.",
    ),
]
Pages = Annotated[int, typer.Option(min=10, max=100_000, metavar="N", help="Of the made-up web.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Of everything that is left to chance.")]
Figures = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write the curves there as SVG, too.")]

RootCash = Annotated[
    float,
    typer.Option(min=1, max=10_000, metavar="N", help="Endowments that page 0 begins with, as a crawl's seeds."),
]


@app.command()
def opic(
    graph: GraphName = "power-law",
    pages: Pages = 10_000,
    passes: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Visits of each page, on average.")] = 10,
    selection: Annotated[
        list[str] | None,
        typer.Option(metavar="greedy|cycle|random", help="Which page is next; may be repeated. Unless said, all."),
    ] = None,
    window: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="How far back importance looks: interpolation:24, variable:8, fixed:16, blocks:24."
        ),
    ] = "interpolation",
    batch: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Pages claimed at a time; 1 is as published.")
    ] = 1,
    root_cash: RootCash = 100,
    virtual_page_share: Annotated[
        float, typer.Option(min=0.01, max=1, metavar="SHARE", help="Of a visit's cash, that goes to the reserve.")
    ] = 0.15,
    reaction: Annotated[
        bool,
        typer.Option("--reaction", help="See, too, how the error comes back after a tenth of the links is replaced."),
    ] = False,
    interpolation: Annotated[
        bool,
        typer.Option("--interpolation", help="See, too, what a page's two numbers tell of the window: figure 1."),
    ] = False,
    seed: Seed = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Compare the importance that visits tell with what it is in truth, visit after visit.

    Figures 2 and 3 of Abiteboul, Preda and Cobena (WWW 2003): the error over all pages, and over the most important
    tenth; the error factor, 1 / G, and how many times as much random choice errs as most cash first. What settles the
    visits and estimates is what the crawler itself uses.

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
        typer.Option(metavar="POLICY", help="A policy such as variable:8; may be repeated. Unless said, one of each."),
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, metavar="SHARE", help="Of the pages that change in a pass; may be repeated."),
    ] = None,
    seed: Seed = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Compare windows of importance on a graph whose links go on changing, over the same greedy visits.

    Figures 4, 5 and 6 of Abiteboul, Preda and Cobena (WWW 2003): in every pass a share of the pages gets twice or half
    as many links; the error by that share, and the numbers that each policy stores.

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
    limit: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Of the pages that are fetched.")] = 0.1,
    way: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WAY",
            help="opic, breadth, depth, mixed, random or omniscient; may be repeated. Unless said, all.",
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Pages claimed at a time.")] = 10,
    root_cash: RootCash = 100,
    seed: Seed = 1,
    figures: Figures = None,
    as_json: Json = False,
) -> int:
    """Compare the orders in which new pages are fetched: by how much importance the first ones hold.

    Importance is that of the whole graph, by power iteration. The first four ways are the crawler's own orders;
    omniscient always fetches the most important page that is known.
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
    rounds: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Pages read, one a round.")] = 5,
    as_json: Json = False,
) -> int:
    """Show on five pages what Nutch 0.9 takes for importance, beside what the same visits tell by OPIC.

    Examples:
        python -m labs nutch
        python -m labs nutch --rounds 50

    """
    from labs.experiments.cli import importance

    return importance.five_pages(rounds=rounds, as_json=as_json)


app.add_typer(time_app.app)
