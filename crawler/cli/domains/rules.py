"""recrawl rules: their options and their help."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, cast

import typer

from crawler.cli import values
from crawler.cli.options import MOST, At, DomainName, Json

if TYPE_CHECKING:
    from crawler.app.rules import RenderMode

app = typer.Typer(
    no_args_is_help=True,
    help="Say what of pages to ignore or watch, how often to look at them, and what they are worth.",
)

Pattern = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN",
        help="Of path and query: '/docs/', '*.html$' or 're:/20../' (RE2: no looking ahead, no back-references).",
    ),
]


@app.command("list")
def list_all(domain: DomainName, as_json: Json = False) -> None:
    """List a domain's rules in their order, with the pages that count for a limit.

    Examples:

        recrawl rules list docs.example.com
        recrawl rules list docs.example.com --json
    """
    from crawler.cli.domains import rules_output

    rules_output.list_all(domain, as_json=as_json)


@app.command()
def add(
    domain: DomainName,
    pattern: Pattern,
    least: Annotated[
        timedelta | None,
        typer.Option(parser=values.interval, metavar="SPAN", help="Look no sooner after a look: 1h."),
    ] = None,
    most: Annotated[
        timedelta | None,
        typer.Option(parser=values.interval, metavar="SPAN", help="Look no later after a look: 7d."),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(parser=values.positive, metavar="NUMBER", help="How many times as important such a page is."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Never again look at a page that was had.")] = False,
    max_pages: Annotated[
        int | None, typer.Option(min=0, max=MOST, metavar="N", help="Pages of the pattern to keep; 0 for no more.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="PLACE", help="Do not compare such elements; may be repeated.")
    ] = None,
    watch: Annotated[
        list[str] | None, typer.Option(metavar="PLACE", help="Compare only such elements; may be repeated.")
    ] = None,
    ignore_text: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Do not compare what this finds in a piece of text; may be repeated."),
    ] = None,
    render: Annotated[
        str | None,
        typer.Option(parser=values.render_mode, metavar="WHEN", help="In a browser: auto, always or never."),
    ] = None,
    first: Annotated[bool, typer.Option("--first", help="Ask it before all others; else after them.")] = False,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Make a rule about a domain's pages of a pattern; one of the same pattern is replaced where it stands.

    Several rules may match a page. Of least, most and weight each is told by the first rule that says it; a page counts
    for every limit that it matches, and it is looked at once if any rule says so. Budget and politeness hold beside.
    What any of them ignores or watches is so, for both versions that are compared: no page changes by a rule. A place
    is a CSS selector, or an XPath behind xpath:. `recrawl try` shows what they leave, and which leaves what out.

    Examples:

        recrawl rules add docs.example.com /news/ --least 1h --most 1d --weight 5
        recrawl rules add docs.example.com '*.pdf$' --once
        recrawl rules add docs.example.com '/calendar/' --max-pages 1000 --first
        recrawl rules add docs.example.com / --ignore '.ad, #visitors' --ignore-text 'Built in [0-9]+ ms'
        recrawl rules add shop.example.com /item/ --watch .price --watch .stock
        recrawl rules add app.example.com /live/ --render always
        recrawl rules add shop.example.com /item/ --ignore "xpath://tr[th='Last update']"
    """
    from crawler.app.rules import PageRule, View, make_rule
    from crawler.cli.domains import rules_output

    rule = make_rule(
        lambda: PageRule(
            pattern,
            least=least,
            most=most,
            weight=weight,
            once=once,
            max_pages=max_pages,
            view=View(tuple(ignore or ()), tuple(watch or ()), tuple(ignore_text or ())),
            render=cast("RenderMode | None", render),
        )
    )
    rules_output.add(domain, rule, first=first, at=at, as_json=as_json)


@app.command()
def remove(domain: DomainName, pattern: Pattern, at: At = None, as_json: Json = False) -> None:
    """Take a rule back.

    Examples:

        recrawl rules remove docs.example.com '*.pdf$'
    """
    from crawler.cli.domains import rules_output

    rules_output.remove(domain, pattern, at=at, as_json=as_json)
