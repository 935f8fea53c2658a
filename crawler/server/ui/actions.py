"""What the forms do: each calls the function behind the command of that name, and says what came of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from crawler.app import domains, rules
from crawler.app.database import Database
from crawler.app.domains import Domain
from crawler.app.pieces import PickWay, PieceAsked, rule_of_pick
from crawler.app.registration import domain_named, url_of
from crawler.app.revisits import Url, start_recrawl
from crawler.app.revisits import refresh as refresh_pages
from crawler.app.settings import BY_NAME, Kind, SettingsPatch, option_name, parse_field
from crawler.app.status import format_wait
from crawler.errors import BadInput, StackFailed
from crawler.format.domain_settings import format_changed_settings, format_rule
from crawler.format.values import format_count
from crawler.server.ui.links import SERVED

# The settings that have fields of their own, by their names; all others are set one by one.
OFFERED = ("budget_per_day", "target_freshness", "target_age", "bytes_per_day")
MOST_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a form.

    seen_at: where its run can be watched, if there is one.  onward: the page that shows it; empty for the domain's.
    """

    said: str
    domain: Domain
    is_well: bool = True
    seen_at: str = ""
    onward: str = ""


Form = Mapping[str, str]
Action = Callable[[Database, Form, datetime], Awaitable[Outcome]]


async def add_domain(db: Database, form: Form, at: datetime) -> Outcome:
    """Register a domain, and let the running stack begin with it. Raises BadInput."""
    typed = form.get("url", "").strip()
    if not typed:
        raise BadInput("name a web address, such as https://docs.example.com")
    values = _parse({name: form[name] for name in OFFERED if name in form})
    if form.get("allow_private"):
        values["allow_private"] = True
    (added,) = await domains.add_domains(db, [typed], SettingsPatch(values), at=at)
    domain, name = added.new_domain, added.new_domain.authority
    seen_at = await _started(db, domain, domain.root)
    then = "its first crawl has begun" if seen_at else f"no stack is running, so crawl it: recrawl crawl {name}"
    warned = f" {added.warning}." if added.warning else ""
    return Outcome(f"{name} is registered; {then}.{warned}", domain, is_well=not added.warning, seen_at=seen_at)


async def set_domain(db: Database, form: Form, at: datetime) -> Outcome:
    """Set a domain's budget and target as they were typed; what was left empty goes back to its default."""
    domain = await find_domain(db, form.get("name", ""))
    return await _change(db, domain, {name: form[name] for name in OFFERED if name in form}, at=at)


async def set_one(db: Database, form: Form, at: datetime) -> Outcome:
    """Set one setting of the table as it was typed; empty, it goes back to its default. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    name = form.get("setting", "")
    if name not in BY_NAME:
        raise BadInput("choose one of the settings")
    return await _change(db, domain, {name: form.get("value", "")}, at=at)


async def _change(db: Database, before: Domain, typed: Mapping[str, str], *, at: datetime) -> Outcome:
    """Change the settings of a domain, by name as they were typed, and say from what to what."""
    patch = SettingsPatch(_parse(typed))
    unset = [option_name(BY_NAME[name]) for name, text in typed.items() if not text.strip()]
    after = await domains.change_settings(db, before, patch, unset=unset, at=at)
    said = format_changed_settings(before.settings, after.settings)
    if not said:
        return Outcome(f"{after.authority} was so before: nothing is changed.", after)
    then = "The next plan, within the hour, spreads its looks anew."
    return Outcome(f"{after.authority} is changed. {'; '.join(said)}. {then}", after)


async def remove(db: Database, form: Form, _at: datetime) -> Outcome:
    """Forget a domain, once its name was typed. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    if form.get("confirmed", "").strip().casefold() != domain.authority:
        raise BadInput(f"{domain.authority} is still there: to forget it and everything about it, type its name")
    await domains.remove_domains(db, [domain.authority])
    return Outcome(f"{domain.authority} is forgotten.", domain, onward=SERVED.home())


async def set_paused(db: Database, form: Form, _at: datetime, *, paused: bool) -> Outcome:
    """Leave a domain alone, or crawl it again."""
    domain = await find_domain(db, form.get("name", ""))
    await domains.set_paused(db, [domain.authority], paused=paused)
    return Outcome(f"{domain.authority} is {'paused' if paused else 'active'}.", domain)


async def refresh(db: Database, form: Form, _at: datetime) -> Outcome:
    """Have the pages under a prefix looked at now. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    asked = await refresh_pages(db, domain.authority, prefix=form.get("prefix", "").strip())
    seen_at = await _started(db, domain, asked.prefix)
    what = f"{format_count(asked.pages, 'page')} under {asked.prefix} {'is' if asked.pages == 1 else 'are'} due now"
    then = f"no worker is running: {asked.command}, or recrawl up"
    if asked.wait is not None and asked.wait.reason.is_obstacle:
        then = f"they wait: {domain.authority} {format_wait(asked.wait, domain, now=datetime.now(UTC))}"
    elif seen_at:
        then = "the running stack fetches them"
    return Outcome(f"{what}; {then}.", domain, seen_at=seen_at, onward=page_before(form))


async def make_rule(db: Database, form: Form, at: datetime) -> Outcome:
    """Make the rule of a pick. Raises BadInput."""
    url = parse_url(form.get("url", ""))
    domain = await domain_named(db, url)
    made = rule_of_pick(domain.settings.rules, piece_asked(form))
    changed = await rules.add_rule(db, domain, made, at=at)
    return Outcome(f"From now on: {format_rule(made)}.", changed, onward=SERVED.page(url))


async def remove_rule(db: Database, form: Form, at: datetime) -> Outcome:
    """Take a rule back."""
    domain, pattern = await find_domain(db, form.get("name", "")), form.get("pattern", "")
    changed = await rules.remove_rule(db, domain, pattern, at=at)
    return Outcome(f"There is no rule for {pattern} any more.", changed)


FORMS: dict[str, Action] = {
    "/domains/add": add_domain,
    "/domains/set": set_domain,
    "/domains/set-one": set_one,
    "/domains/remove": remove,
    "/domains/pause": partial(set_paused, paused=True),
    "/domains/resume": partial(set_paused, paused=False),
    "/refresh": refresh,
    "/rules/add": make_rule,
    "/rules/remove": remove_rule,
}


def page_before(form: Form) -> str:
    """Return the page that a form stood on; never another site."""
    back = form.get("back", "")
    return back if back.startswith("/") and not back.startswith("//") else SERVED.home()


async def find_domain(db: Database, text: str) -> Domain:
    """Return the domain that a form or an address names. Raises BadInput."""
    if not text:
        raise BadInput("no domain is named")
    return await domain_named(db, text)


def parse_url(text: str) -> Url:
    """Return the URL that an address names, without a scheme that could run anything. Raises BadInput."""
    if not text:
        raise BadInput("no page is named")
    return url_of(text)


def piece_asked(form: Form) -> PieceAsked:
    """A pick as a form or an address has it. Raises BadInput."""
    try:
        way = PickWay(form.get("way", PickWay.IGNORE_TEXT))
    except ValueError as error:
        raise BadInput("choose what is to become of the piece: ignore its text, its place, or watch it") from error
    return PieceAsked(
        piece=number(form.get("piece", "")),
        way=way,
        said=form.get("said", "").strip(),
        pattern=form.get("pattern", "").strip() or "/",
    )


def number(typed: str) -> int:
    """A number that an address names, 0 for anything else."""
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) <= MOST_DIGITS else 0


async def _started(db: Database, domain: Domain, prefix: Url) -> str:
    """Where a run of the stack that looks at these pages can be watched; empty where no stack runs, or it cannot."""
    try:
        return await asyncio.to_thread(start_recrawl, db.settings, domain, prefix) or ""
    except StackFailed:
        return ""


def _parse(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that were typed, by name; what was left empty is left out. Raises BadInput."""
    values: dict[str, Any] = {}
    for name, text in typed.items():
        setting, lines = BY_NAME[name], text.strip().splitlines()
        if setting.kind is Kind.TEXTS and lines:
            values[name] = tuple(parse_field(setting, line.strip()) for line in lines if line.strip())
        elif lines:
            values[name] = parse_field(setting, text.strip())
    return values
