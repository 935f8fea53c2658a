"""recrawl rules: per-pattern settings for the pages of a domain."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Literal

import typer

from crawler.cli import values
from crawler.cli.lazy import domain_settings, registration, rules
from crawler.cli.options import MAX_INT, At, DomainName, Json, argument, flag, option, span_option
from crawler.cli.output import print_listing, print_outcome
from crawler.cli.session import Interrupts, run_on_database
from crawler.format.values import format_span

app = typer.Typer(
    no_args_is_help=True,
    help="Manage rules for pages that match a pattern: intervals, weights, limits, parts to compare, and values.",
)

RenderMode = Literal["auto", "always", "never"]
Pattern = Annotated[
    str,
    argument(
        "PATTERN", "The start of path and query, such as '/docs/' or '*.html$', or a part in RE2 syntax: 're:/20../'."
    ),
]


@app.command("list")
def list_all(domain: DomainName, as_json: Json = False) -> None:
    """List the rules of a domain in order, with the number of pages that count toward each limit.

    Examples:

        recrawl rules list docs.example.com
        recrawl rules list docs.example.com --json
    """
    registered, pages = run_on_database(lambda db, _: _count_limited_pages(db, domain))
    name = registered.authority
    empty = f"{name} has no rules: recrawl rules add {name} PATTERN"
    rows = (_format_row(rule, pages) for rule in registered.settings.rules)
    right = ("min interval", "max interval", "weight", "pages", "max pages")
    print_listing(_describe_rules(registered, pages), rows, right=right, empty=empty, as_json=as_json)


@app.command()
def add(
    domain: DomainName,
    pattern: Pattern,
    min_interval: Annotated[
        timedelta | None, span_option("Revisit no sooner than this after a visit, such as 1h.")
    ] = None,
    max_interval: Annotated[
        timedelta | None, span_option("Revisit no later than this after a visit, such as 7d.")
    ] = None,
    weight: Annotated[
        float | None,
        option("NUMBER", "Multiply the importance of matching pages by this.", parser=values.parse_positive_option),
    ] = None,
    once: Annotated[bool, flag("--once", "Never revisit a page after its first successful visit.")] = False,
    max_pages: Annotated[
        int | None, option("N", "Maximum number of matching pages; 0: add no more pages.", min=0, max=MAX_INT)
    ] = None,
    ignore: Annotated[
        list[str] | None, option("SELECTOR", "Ignore these elements in comparisons. Can be repeated.")
    ] = None,
    watch: Annotated[list[str] | None, option("SELECTOR", "Compare only these elements. Can be repeated.")] = None,
    ignore_text: Annotated[
        list[str] | None, option("REGEX", "Ignore the parts of a block's text that match. Can be repeated.")
    ] = None,
    value: Annotated[
        list[str] | None,
        option(
            "VALUE",
            "Read a number: 'price .price', 'price:EUR jsonld:offers.price' or 'price meta:product:price:amount'. Can "
            "be repeated.",
        ),
    ] = None,
    render: Annotated[RenderMode | None, option("WHEN", "Render in a browser: auto, always or never.")] = None,
    first: Annotated[bool, flag("--first", "Insert before all other rules. Default: after them.")] = False,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Add a rule for the pages of a domain that match a pattern.

    A rule with the same pattern is replaced. The new rule takes its place, or with --first, the first place.

    Several rules can match a page. For each interval, the weight and --render, the first matching rule that sets it
    wins; if a minimum and a maximum interval contradict each other, that of the earlier rule applies. The --max-pages
    of all matching rules apply, and --once applies if any of them sets it. Budgets and politeness still apply.
    --ignore, --watch and --ignore-text of all matching rules are combined; they apply to both versions in a comparison,
    so adding a rule is never reported as a change. A selector is a CSS selector, or an XPath after `xpath:`.
    --value reads a number as NAME[:UNIT[:MARK]] SOURCE; `recrawl values` shows its changes. MARK is the decimal mark.
    `recrawl try` shows the effect of the rules on a page.

    Examples:

        recrawl rules add docs.example.com /news/ --min-interval 1h --max-interval 1d --weight 5
        recrawl rules add docs.example.com '*.pdf$' --once
        recrawl rules add docs.example.com '/calendar/' --max-pages 1000 --first
        recrawl rules add docs.example.com / --ignore '.ad, #visitors' --ignore-text 'Built in [0-9]+ ms'
        recrawl rules add shop.example.com /item/ --watch .price --watch .stock
        recrawl rules add shop.example.com '/kettle$' --value 'price:EUR .price'
        recrawl rules add app.example.com /live/ --render always
        recrawl rules add shop.example.com /table/ --ignore "xpath://tr[th='Last update']"
    """
    rule = rules.make_rule(  # raises BadInput in place of the ValueErrors of PageRule
        lambda: rules.PageRule(
            pattern,
            min_interval=min_interval,
            max_interval=max_interval,
            weight=weight,
            once=once,
            max_pages=max_pages,
            view=rules.View(*(tuple(texts or ()) for texts in (ignore, watch, ignore_text, value))),
            render=render,
        )
    )
    message = domain_settings.format_rule(rule)
    _change_rules(domain, partial(rules.add_rule, rule=rule, first=first), at=at, message=message, as_json=as_json)


@app.command()
def remove(domain: DomainName, pattern: Pattern, at: At = None, as_json: Json = False) -> None:
    """Remove a rule.

    Examples:

        recrawl rules remove docs.example.com '*.pdf$'
    """
    message = f"{pattern}: rule removed"
    _change_rules(domain, partial(rules.remove_rule, pattern=pattern), at=at, message=message, as_json=as_json)


def _change_rules(
    name: str, change: "Callable[..., Awaitable[rules.Domain]]", *, at: datetime | None, message: str, as_json: bool
) -> None:
    async def work(db: "rules.AppDatabase", _: Interrupts) -> "tuple[rules.Domain, dict[str, int]]":
        domain = await registration.get_domain(db, name)
        await registration.require_after_last_visit(db, [domain] if at is not None else [], at)
        await change(db, domain, at=at or datetime.now(UTC))
        return await _count_limited_pages(db, name)

    domain, pages = run_on_database(work)
    print_outcome(_describe_rules(domain, pages), f"{domain.authority} {message}", as_json=as_json)


async def _count_limited_pages(db: "rules.AppDatabase", name: str) -> "tuple[rules.Domain, dict[str, int]]":
    """Return a domain, and the number of pages that count toward the limit of each rule, by pattern."""
    domain = await registration.get_domain(db, name)
    return domain, await rules.count_limited_pages(db, domain.id)


def _describe_rules(domain: "rules.Domain", pages: Mapping[str, int]) -> dict[str, object]:
    described = [rules.describe_rule(rule) | {"pages": pages.get(rule.pattern)} for rule in domain.settings.rules]
    return {"domain": domain.authority, "rules": described}


def _format_row(rule: "rules.PageRule", pages: Mapping[str, int]) -> dict[str, str]:
    return {
        "pattern": rule.pattern,
        "min interval": format_span(rule.min_interval) if rule.min_interval is not None else "",
        "max interval": format_span(rule.max_interval) if rule.max_interval is not None else "",
        "weight": f"{rule.weight:g}" if rule.weight is not None else "",
        "once": "yes" if rule.once else "",
        "pages": str(pages.get(rule.pattern, "")),
        "max pages": str(rule.max_pages) if rule.max_pages is not None else "",
        "compared": domain_settings.format_view(rule.view),
        "values": ", ".join(rule.view.values),
    }
