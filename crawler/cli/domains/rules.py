"""recrawl rules: what a user says about the pages of a pattern."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, cast

import typer

from crawler.cli import values
from crawler.cli.options import MOST, At, DomainName, Json
from crawler.cli.output import print_found, print_outcome
from crawler.cli.session import Interrupts, with_database
from crawler.format.values import format_span

if TYPE_CHECKING:
    from crawler.app.database import Database
    from crawler.app.rules import Domain, PageRule, RenderMode

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
    found, pages = with_database(lambda db, _: _with_counts(db, domain))
    name = found.authority
    none = f"{name} has no rules: recrawl rules add {name} PATTERN"
    rows = (_row(rule, pages) for rule in found.settings.rules)
    right = ("least", "most", "weight", "pages", "at most")
    print_found(_document(found, pages), rows, right=right, empty=none, as_json=as_json)


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
    from crawler.app.rules import PageRule, View, add_rule, make_rule
    from crawler.format.settings import format_rule

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
    _change(
        domain,
        lambda db, found, instant: add_rule(db, found, rule, first=first, at=instant),
        at=at,
        said=format_rule(rule),
        as_json=as_json,
    )


@app.command()
def remove(domain: DomainName, pattern: Pattern, at: At = None, as_json: Json = False) -> None:
    """Take a rule back.

    Examples:

        recrawl rules remove docs.example.com '*.pdf$'
    """
    from crawler.app.rules import remove_rule

    _change(
        domain,
        lambda db, found, instant: remove_rule(db, found, pattern, at=instant),
        at=at,
        said=f"{pattern}: no rule any more",
        as_json=as_json,
    )


def _change(
    name: str,
    change: "Callable[[Database, Domain, datetime], Awaitable[Domain]]",
    *,
    at: datetime | None,
    said: str,
    as_json: bool,
) -> None:
    from crawler.app.registration import domain_named, require_not_before_last_visit

    async def work(db: "Database", _: Interrupts) -> "tuple[Domain, dict[str, int]]":
        domain = await domain_named(db, name)
        await require_not_before_last_visit(db, [domain] if at is not None else [], at)
        await change(db, domain, at or datetime.now(UTC))
        return await _with_counts(db, name)

    domain, pages = with_database(work)
    print_outcome(_document(domain, pages), f"{domain.authority} {said}", as_json=as_json)


async def _with_counts(db: "Database", name: str) -> "tuple[Domain, dict[str, int]]":
    """Return a domain, and how many pages each of its rules limits."""
    from crawler.app.registration import domain_named
    from crawler.app.rules import count_limited_pages

    domain = await domain_named(db, name)
    return domain, await count_limited_pages(db, domain.id)


def _document(domain: "Domain", pages: Mapping[str, int]) -> dict[str, object]:
    from crawler.app.rules import describe_rule

    described = [describe_rule(rule) | {"pages": pages.get(rule.pattern)} for rule in domain.settings.rules]
    return {"domain": domain.authority, "rules": described}


def _row(rule: "PageRule", pages: Mapping[str, int]) -> dict[str, str]:
    from crawler.format.settings import format_view

    return {
        "pattern": rule.pattern,
        "least": format_span(rule.least) if rule.least is not None else "",
        "most": format_span(rule.most) if rule.most is not None else "",
        "weight": f"{rule.weight:g}" if rule.weight is not None else "",
        "again": "never" if rule.once else "",
        "pages": str(pages.get(rule.pattern, "")),
        "at most": str(rule.max_pages) if rule.max_pages is not None else "",
        "compared": format_view(rule.view),
    }
