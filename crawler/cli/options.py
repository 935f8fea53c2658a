"""The options that several commands share, each declared once."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from crawler.cli import values

SETTINGS = "Settings of the domain"
IMPORTANCE = "What is important in the domain"
MOST = 2**31 - 1

At = Annotated[
    datetime | None,
    typer.Option(
        parser=values.instant,
        metavar="INSTANT",
        help="Act as if it were this instant: ISO 8601, UTC unless it says so, not before a domain's last visit.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")]

DomainName = Annotated[str, typer.Argument(metavar="DOMAIN", help="A registered name, or any URL of it.")]
DomainNames = Annotated[list[str], typer.Argument(metavar="DOMAIN", help="Registered names, or URLs of them.")]
Top = Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="How many.")]

# What a domain may be told; None where nothing was said.
Seed = Annotated[
    list[str] | None,
    typer.Option(metavar="URL", help="Begin here too, beside the root; may be repeated.", rich_help_panel=SETTINGS),
]
Budget = Annotated[
    int | None,
    typer.Option("--budget", min=0, max=MOST, metavar="N", help="Requests per UTC day.", rich_help_panel=SETTINGS),
]
Bytes = Annotated[
    int | None,
    typer.Option(
        "--bytes",
        parser=values.size,
        metavar="SIZE",
        help="Bytes received per UTC day: 500MB, 2GB, or a plain number.",
        rich_help_panel=SETTINGS,
    ),
]
Fresh = Annotated[
    float | None,
    typer.Option(
        "--fresh",
        parser=values.share,
        metavar="SHARE",
        help="So much of the domain, by importance, is to be fresh: 95%. The plan finds the requests that takes.",
        rich_help_panel=SETTINGS,
    ),
]
NoOlderThan = Annotated[
    timedelta | None,
    typer.Option(
        "--no-older-than",
        parser=values.interval,
        metavar="SPAN",
        help="No page is to be longer unseen: 3d. Instead of --fresh; a budget caps both.",
        rich_help_panel=SETTINGS,
    ),
]
Delay = Annotated[
    timedelta | None,
    typer.Option(
        parser=values.span,
        metavar="SECONDS",
        help="From the end of an answer to the next request; the delay of robots.txt holds where it is longer.",
        rich_help_panel=SETTINGS,
    ),
]
Parallelism = Annotated[
    int | None, typer.Option(min=1, max=256, metavar="N", help="Requests at a time.", rich_help_panel=SETTINGS)
]
Depth = Annotated[
    int | None,
    typer.Option(min=0, max=32_000, metavar="N", help="Links away from the nearest seed.", rich_help_panel=SETTINGS),
]
MaxPages = Annotated[
    int | None, typer.Option(min=1, max=MOST, metavar="N", help="Pages to keep.", rich_help_panel=SETTINGS)
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Only paths like '/docs/', '*.html$' or 're:/20../'; may be repeated.",
        rich_help_panel=SETTINGS,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="No paths like this; may be repeated.", rich_help_panel=SETTINGS),
]
Weight = Annotated[
    float | None,
    typer.Option(
        parser=values.positive,
        metavar="NUMBER",
        help="Worth beside other domains; 1 unless said.",
        rich_help_panel=SETTINGS,
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        parser=values.order,
        metavar="ORDER",
        help="Which new pages come first: opic (by cash), breadth, depth, or mixed (cash and URL).",
        rich_help_panel=IMPORTANCE,
    ),
]
UrlShare = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, metavar="SHARE", help="How much the URL says in order mixed.", rich_help_panel=IMPORTANCE
    ),
]
Favour = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Paths that you favour; may be repeated.", rich_help_panel=IMPORTANCE),
]
FavourBy = Annotated[
    float | None,
    typer.Option(
        parser=values.positive,
        metavar="NUMBER",
        help="How many times as much a favoured page is paid by the reserve, and its URL scores.",
        rich_help_panel=IMPORTANCE,
    ),
]
Discovery = Annotated[
    float | None,
    typer.Option(
        "--discovery-weight",
        min=0,
        max=1000,
        metavar="NUMBER",
        help="What the reserve pays a new page, beside a known one.",
        rich_help_panel=IMPORTANCE,
    ),
]
Refresh = Annotated[
    float | None,
    typer.Option(
        "--refresh-weight",
        min=0,
        max=1000,
        metavar="NUMBER",
        help="What it pays a known page; 1 each unless said.",
        rich_help_panel=IMPORTANCE,
    ),
]
ExternalLinks = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1000,
        metavar="NUMBER",
        help="As how many links within the domain one to another domain counts; 0 unless said.",
        rich_help_panel=IMPORTANCE,
    ),
]
AllowPrivate = Annotated[
    bool | None,
    typer.Option(
        "--allow-private/--no-allow-private",
        help="It is your own server: private addresses may be asked.",
        rich_help_panel=SETTINGS,
    ),
]
Offline = Annotated[bool, typer.Option("--offline", help="Register without asking anybody, not even for an address.")]
