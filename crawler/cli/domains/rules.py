"""recrawl rules: what a user says about the pages of a pattern."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import typer

from crawler.cli import values
from crawler.cli.lazy import domain_settings, registration, rules
from crawler.cli.options import MAX_INT, At, DomainName, Json, declare_argument, declare_flag, declare_option
from crawler.cli.output import print_listing, print_outcome
from crawler.cli.session import Interrupts, run_on_database
from crawler.format.values import format_span

app = typer.Typer(
    no_args_is_help=True,
    help="Say what of pages to ignore or watch, how often to look at them, and what they are worth.",
)

RenderMode = Literal["auto", "always", "never"]
Pattern = Annotated[
    str,
    declare_argument(
        "PATTERN", "Of path and query: '/docs/', '*.html$' or 're:/20../' (RE2: no looking ahead, no back-references)."
    ),
]


@app.command("list")
def list_all(domain: DomainName, as_json: Json = False) -> None:
    """List a domain's rules in their order, with the pages that count for a limit.

    Examples:

        recrawl rules list docs.example.com
        recrawl rules list docs.example.com --json
    """
    registered, pages = run_on_database(lambda db, _: _count_limited_pages(db, domain))
    name = registered.authority
    empty = f"{name} has no rules: recrawl rules add {name} PATTERN"
    rows = (_format_row(rule, pages) for rule in registered.settings.rules)
    right = ("least", "most", "weight", "pages", "at most")
    print_listing(_describe_rules(registered, pages), rows, right=right, empty=empty, as_json=as_json)


@app.command()
def add(
    domain: DomainName,
    pattern: Pattern,
    min_interval: Annotated[
        timedelta | None,
        declare_option("SPAN", "Look no sooner after a look: 1h.", parser=values.parse_interval_option),
    ] = None,
    max_interval: Annotated[
        timedelta | None, declare_option("SPAN", "Look no later after a look: 7d.", parser=values.parse_interval_option)
    ] = None,
    weight: Annotated[
        float | None,
        declare_option("NUMBER", "How many times as important such a page is.", parser=values.parse_positive_option),
    ] = None,
    once: Annotated[bool, declare_flag("--once", "Never again look at a page that was had.")] = False,
    max_pages: Annotated[
        int | None, declare_option("N", "Pages of the pattern to keep; 0 for no more.", min=0, max=MAX_INT)
    ] = None,
    ignore: Annotated[
        list[str] | None, declare_option("PLACE", "Do not compare such elements; may be repeated.")
    ] = None,
    watch: Annotated[list[str] | None, declare_option("PLACE", "Compare only such elements; may be repeated.")] = None,
    ignore_text: Annotated[
        list[str] | None, declare_option("REGEX", "Do not compare what this finds in a piece of text; may be repeated.")
    ] = None,
    render: Annotated[RenderMode | None, declare_option("WHEN", "In a browser: auto, always or never.")] = None,
    first: Annotated[bool, declare_flag("--first", "Ask it before all others; else after them.")] = False,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Make a rule about a domain's pages of a pattern; one of the same pattern is replaced where it stands.

    Several rules may match a page. Of least, most and weight each is told by the first rule that says it; a page counts
    for every limit that it matches, and it is looked at once if any rule says so. Budget and politeness hold beside.
    What any of them ignores or watches is so, for both versions that are compared: no page changes by a rule. A place
    is a CSS selector, or an XPath behind xpath:. `recrawl try` shows what they leave, and which leaves what out.

    Examples:

        recrawl rules add docs.example.com /news/ --min-interval 1h --max-interval 1d --weight 5
        recrawl rules add docs.example.com '*.pdf$' --once
        recrawl rules add docs.example.com '/calendar/' --max-pages 1000 --first
        recrawl rules add docs.example.com / --ignore '.ad, #visitors' --ignore-text 'Built in [0-9]+ ms'
        recrawl rules add shop.example.com /item/ --watch .price --watch .stock
        recrawl rules add app.example.com /live/ --render always
        recrawl rules add shop.example.com /item/ --ignore "xpath://tr[th='Last update']"
    """
    rule = rules.make_rule(
        lambda: rules.PageRule(
            pattern,
            min_interval=min_interval,
            max_interval=max_interval,
            weight=weight,
            once=once,
            max_pages=max_pages,
            view=rules.View(tuple(ignore or ()), tuple(watch or ()), tuple(ignore_text or ())),
            render=render,
        )
    )
    _change_rules(
        domain,
        lambda db, found, instant: rules.add_rule(db, found, rule, first=first, at=instant),
        at=at,
        message=domain_settings.format_rule(rule),
        as_json=as_json,
    )


@app.command()
def remove(domain: DomainName, pattern: Pattern, at: At = None, as_json: Json = False) -> None:
    """Take a rule back.

    Examples:

        recrawl rules remove docs.example.com '*.pdf$'
    """
    _change_rules(
        domain,
        lambda db, found, instant: rules.remove_rule(db, found, pattern, at=instant),
        at=at,
        message=f"{pattern}: no rule any more",
        as_json=as_json,
    )


def _change_rules(
    name: str,
    change: "Callable[[rules.AppDatabase, rules.Domain, datetime], Awaitable[rules.Domain]]",
    *,
    at: datetime | None,
    message: str,
    as_json: bool,
) -> None:
    async def work(db: "rules.AppDatabase", _: Interrupts) -> "tuple[rules.Domain, dict[str, int]]":
        domain = await registration.get_domain(db, name)
        await registration.require_not_before_last_visit(db, [domain] if at is not None else [], at)
        await change(db, domain, at or datetime.now(UTC))
        return await _count_limited_pages(db, name)

    domain, pages = run_on_database(work)
    print_outcome(_describe_rules(domain, pages), f"{domain.authority} {message}", as_json=as_json)


async def _count_limited_pages(db: "rules.AppDatabase", name: str) -> "tuple[rules.Domain, dict[str, int]]":
    """Return a domain, and how many pages each of its rules limits."""
    domain = await registration.get_domain(db, name)
    return domain, await rules.count_limited_pages(db, domain.id)


def _describe_rules(domain: "rules.Domain", pages: Mapping[str, int]) -> dict[str, object]:
    rule_documents = [rules.describe_rule(rule) | {"pages": pages.get(rule.pattern)} for rule in domain.settings.rules]
    return {"domain": domain.authority, "rules": rule_documents}


def _format_row(rule: "rules.PageRule", pages: Mapping[str, int]) -> dict[str, str]:
    return {
        "pattern": rule.pattern,
        "least": format_span(rule.min_interval) if rule.min_interval is not None else "",
        "most": format_span(rule.max_interval) if rule.max_interval is not None else "",
        "weight": f"{rule.weight:g}" if rule.weight is not None else "",
        "again": "never" if rule.once else "",
        "pages": str(pages.get(rule.pattern, "")),
        "at most": str(rule.max_pages) if rule.max_pages is not None else "",
        "compared": domain_settings.format_view(rule.view),
    }
