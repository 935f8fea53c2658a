"""recrawl rules: what a user says about the pages of a pattern."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from crawler.app.registration import domain_named, require_not_before_last_visit
from crawler.cli.actions.domains.register import described_rule
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.core.domain import Domain
from crawler.core.page import View
from crawler.core.page_rules import PageRule
from crawler.errors import BadInput
from crawler.format.values import format_count, format_span
from crawler.store import domains
from crawler.store.database import Database

MOST_RULES = 1000  # each is asked about every page that is handed out


def list_all(text: str, *, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[Domain, dict[str, int]]:
        domain = await domain_named(db, text)
        return domain, await domains.pages_by_pattern(db, domain)

    domain, pages = with_database(work)
    if as_json:
        _print(domain, pages)
    elif not domain.settings.rules:
        say(f"{domain.authority} has no rules: recrawl rules add {domain.authority} PATTERN")
    else:
        show(
            ["pattern", "least", "most", "weight", "again", "pages", "at most", "compared"],
            [_row(rule, pages) for rule in domain.settings.rules],
            right=["least", "most", "weight", "pages", "at most"],
        )
    return DONE


def add(text: str, rule_of: Callable[[], PageRule], *, first: bool, at: datetime | None, as_json: bool) -> int:
    """Add a rule. rule_of: makes it of what was typed, or raises ValueError."""
    rule = usable(rule_of)
    _change(text, lambda before: with_rule(before, rule, first=first), at=at, as_json=as_json, said=shown_rule(rule))
    return DONE


def remove(text: str, pattern: str, *, at: datetime | None, as_json: bool) -> int:
    def less(before: tuple[PageRule, ...]) -> tuple[PageRule, ...]:
        after = tuple(rule for rule in before if rule.pattern != pattern)
        if len(after) == len(before):
            known = ", ".join(rule.pattern for rule in before) or "none"
            raise BadInput(f"there is no rule for {pattern}; there are: {known}")
        return after

    _change(text, less, at=at, as_json=as_json, said=f"{pattern}: no rule any more")
    return DONE


def usable(rule_of: Callable[[], PageRule]) -> PageRule:
    """The rule. Raises BadInput where it cannot be made, or says nothing."""
    try:
        rule = rule_of()
    except ValueError as error:
        raise BadInput(str(error)) from error
    if not rule.says_something:
        raise BadInput(
            f"the rule for {rule.pattern} says nothing: add --least, --most, --weight, --once, --max-pages, --ignore, "
            "--ignore-text, --watch or --render"
        )
    return rule


def with_rule(before: tuple[PageRule, ...], rule: PageRule, *, first: bool) -> tuple[PageRule, ...]:
    """The rules with one more: in place of that of its pattern, or else at the end; first: before all others."""
    others = tuple(each for each in before if each.pattern != rule.pattern)
    if len(others) >= MOST_RULES:
        raise BadInput(f"{MOST_RULES} rules are the most that a domain may have")
    if first:
        return (rule, *others)
    if len(others) == len(before):
        return (*before, rule)
    return tuple(rule if each.pattern == rule.pattern else each for each in before)


RuleChange = Callable[[tuple[PageRule, ...]], tuple[PageRule, ...]]


async def change_rules(db: Database, domain: Domain, change: RuleChange, *, at: datetime) -> Domain:
    """The domain with other rules. Raises BadInput."""
    return await domains.change(db, domain, replace(domain.settings, rules=change(domain.settings.rules)), at=at)


def _change(
    text: str,
    change: RuleChange,
    *,
    at: datetime | None,
    as_json: bool,
    said: str,
) -> None:
    async def work(db: Database, _: Interrupts) -> tuple[Domain, dict[str, int]]:
        domain = await domain_named(db, text)
        await require_not_before_last_visit(db, [domain] if at is not None else [], at)
        domain = await change_rules(db, domain, change, at=at or datetime.now(UTC))
        return domain, await domains.pages_by_pattern(db, domain)

    domain, pages = with_database(work)
    if as_json:
        _print(domain, pages)
    else:
        say(f"{domain.authority} {said}")


def _print(domain: Domain, pages: Mapping[str, int]) -> None:
    described = [described_rule(rule) | {"pages": pages.get(rule.pattern)} for rule in domain.settings.rules]
    print_json({"domain": domain.authority, "rules": described})


def _row(rule: PageRule, pages: Mapping[str, int]) -> tuple[str, ...]:
    return (
        rule.pattern,
        format_span(rule.least) if rule.least is not None else "",
        format_span(rule.most) if rule.most is not None else "",
        f"{rule.weight:g}" if rule.weight is not None else "",
        "never" if rule.once else "",
        str(pages.get(rule.pattern, "")),
        str(rule.max_pages) if rule.max_pages is not None else "",
        shown_view(rule.view),
    )


def shown_rule(rule: PageRule) -> str:
    """A rule in a line."""
    said = [
        f"looked at no sooner than after {format_span(rule.least)}" if rule.least is not None else "",
        f"no later than after {format_span(rule.most)}" if rule.most is not None else "",
        f"{rule.weight:g} times as important" if rule.weight is not None else "",
        "never looked at again" if rule.once else "",
        f"{format_count(rule.max_pages, 'page')} at most" if rule.max_pages is not None else "",
        f"compared: {shown_view(rule.view)}" if rule.view else "",
        f"in a browser: {rule.render}" if rule.render is not None else "",
    ]
    return f"{rule.pattern}: {', '.join(filter(None, said))}"


def shown_view(view: View) -> str:
    """What of a page is compared, in a few words; empty for all."""
    ignored = " and ".join(view.ignore + tuple(f"what {text!r} finds" for text in view.ignore_text))
    watched = f"only {' and '.join(view.watch)}" if view.watch else ""
    return " ".join(filter(None, [watched or ("all" if ignored else ""), f"without {ignored}" if ignored else ""]))
