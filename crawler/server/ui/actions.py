"""The handlers of the forms: each calls the function of crawler.app that a command calls, and returns its outcome."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from crawler.app import domains, rules
from crawler.app.blocks import BlockPickRequest, PickAction, make_pick_rule
from crawler.app.database import AppDatabase
from crawler.app.domains import Domain
from crawler.app.registration import get_domain, parse_typed_url
from crawler.app.revisits import Url, recrawl, try_to_recrawl
from crawler.app.settings import BY_NAME, SettingKind, SettingsPatch, get_option_name, parse_field
from crawler.app.status import format_wait
from crawler.errors import BadInput
from crawler.format.domain_settings import format_changed_settings, format_rule
from crawler.server.ui.links import SERVER_LINKS

# The settings that both forms "Add a domain" and "Budget and freshness target" may set.
TARGET_SETTINGS = ("budget_per_day", "target_freshness", "max_age", "bytes_per_day")
MAX_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a form.

    run_url: the address of the crawl run that it started, or empty.  next_page: the page to show; empty for the
    page of the domain.
    """

    message: str
    domain: Domain
    is_well: bool = True
    run_url: str = ""
    next_page: str = ""


Form = Mapping[str, str]
Action = Callable[[AppDatabase, Form, datetime], Awaitable[Outcome]]


async def add_domain(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Register a domain and start its first crawl if the local stack runs. Raises BadInput."""
    address = form.get("url", "").strip()
    if not address:
        raise BadInput("enter a web address, such as https://docs.example.com")
    values = _parse_settings({name: form[name] for name in TARGET_SETTINGS if name in form})
    if form.get("allow_private"):
        values["allow_private"] = True
    (added,) = await domains.add_domains(db, [address], SettingsPatch(values), at=at)
    domain, name = added.new_domain, added.new_domain.authority
    run_url = await try_to_recrawl(db, domain, f"{domain.root}*")
    then = "its first crawl has started" if run_url else f"no local stack is running, so run recrawl crawl {name}"
    warning = f" {added.warning}." if added.warning else ""
    return Outcome(f"{name} is registered; {then}.{warning}", domain, is_well=not added.warning, run_url=run_url)


async def set_domain(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Set a domain's budgets and targets as typed; an empty field restores the default. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    return await _change_settings(db, domain, {name: form[name] for name in TARGET_SETTINGS if name in form}, at=at)


async def set_setting(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Set one setting as typed; an empty value restores the default. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    name = form.get("setting", "")
    if name not in BY_NAME:
        raise BadInput("choose a setting")
    return await _change_settings(db, domain, {name: form.get("value", "")}, at=at)


async def _change_settings(db: AppDatabase, before: Domain, typed: Mapping[str, str], *, at: datetime) -> Outcome:
    """Change settings of a domain, given by name as typed, and report the old and new values."""
    patch = SettingsPatch(_parse_settings(typed))
    unset = [get_option_name(BY_NAME[name]) for name, text in typed.items() if not text.strip()]
    after = await domains.change_settings(db, before, patch, unset=unset, at=at)
    changes = format_changed_settings(before.settings, after.settings)
    if not changes:
        return Outcome(f"{after.authority} already has these settings; nothing was changed.", after)
    then = "The next plan, within the hour, reschedules its visits."
    return Outcome(f"{after.authority} was changed. {'; '.join(changes)}. {then}", after)


async def remove_domain(db: AppDatabase, form: Form, _at: datetime) -> Outcome:
    """Remove a domain if its name was typed as confirmation. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    if form.get("confirmed", "").strip().casefold() != domain.authority:
        raise BadInput(f"{domain.authority} was not removed: type its name to confirm that you want to delete its data")
    await domains.remove_domains(db, [domain.authority])
    return Outcome(f"{domain.authority} was removed.", domain, next_page=SERVER_LINKS.home())


async def set_paused(db: AppDatabase, form: Form, _at: datetime, *, paused: bool) -> Outcome:
    """Pause or resume a domain."""
    domain = await find_domain(db, form.get("name", ""))
    await domains.set_paused(db, [domain.authority], paused=paused)
    return Outcome(f"{domain.authority} is {'paused' if paused else 'active'}.", domain)


async def refresh(db: AppDatabase, form: Form, _at: datetime) -> Outcome:
    """Make the pages of a path due now. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    refreshed = await recrawl(db, domain.authority, path=form.get("what", ""))
    what = f"{refreshed.subject} due now"
    then = f"no local stack is running, so run {refreshed.command} or recrawl up"
    if refreshed.wait is not None and refreshed.wait.reason.is_obstacle:
        then = f"they have to wait: {domain.authority} {format_wait(refreshed.wait, domain, now=datetime.now(UTC))}"
    elif refreshed.run_url:
        then = "the local stack fetches them"
    return Outcome(f"{what}; {then}.", domain, run_url=refreshed.run_url, next_page=get_previous_page(form))


async def make_rule(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Add the rule for a picked block, or extend the rule of the same pattern. Raises BadInput."""
    url = parse_url(form.get("url", ""))
    domain = await get_domain(db, url)
    rule = make_pick_rule(domain.settings.rules, parse_block_pick(form))
    changed = await rules.add_rule(db, domain, rule, at=at)
    return Outcome(f"The rule was added: {format_rule(rule)}.", changed, next_page=SERVER_LINKS.page(url))


async def remove_rule(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Remove a rule. Raises BadInput."""
    domain, pattern = await find_domain(db, form.get("name", "")), form.get("pattern", "")
    changed = await rules.remove_rule(db, domain, pattern, at=at)
    return Outcome(f"The rule for {pattern} was removed.", changed)


FORMS: dict[str, Action] = {
    "/domains/add": add_domain,
    "/domains/set": set_domain,
    "/domains/set-one": set_setting,
    "/domains/remove": remove_domain,
    "/domains/pause": partial(set_paused, paused=True),
    "/domains/resume": partial(set_paused, paused=False),
    "/refresh": refresh,
    "/rules/add": make_rule,
    "/rules/remove": remove_rule,
}


def get_previous_page(form: Form) -> str:
    """Return the path of the page that contained a form, or the home page; never another site."""
    back = form.get("back", "")
    return back if back.startswith("/") and not back.startswith("//") else SERVER_LINKS.home()


async def find_domain(db: AppDatabase, text: str) -> Domain:
    """Return the domain that a form field or URL parameter names. Raises BadInput."""
    if not text:
        raise BadInput("the address of this page names no domain: choose one under Domains")
    return await get_domain(db, text)


def parse_url(text: str) -> Url:
    """Return the http or https URL that a form field or URL parameter names. Raises BadInput."""
    if not text:
        raise BadInput("the address of this page names no URL: choose a page of a domain")
    return parse_typed_url(text)


def parse_block_pick(form: Form) -> BlockPickRequest:
    """Parse the picked block from a form or URL parameters. Raises BadInput."""
    try:
        action = PickAction(form.get("action", PickAction.IGNORE_TEXT))
    except ValueError as error:
        raise BadInput("choose an action: ignore the text, ignore the element, or watch the element") from error
    return BlockPickRequest(
        block=parse_number(form.get("block", "")),
        action=action,
        text=form.get("text", "").strip(),
        pattern=form.get("pattern", "").strip() or "/",
    )


def parse_number(typed: str) -> int:
    """Return the number that a URL parameter contains, or 0 for anything else."""
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) <= MAX_DIGITS else 0


def _parse_settings(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the typed settings by name, without the empty ones. Raises BadInput."""
    values: dict[str, Any] = {}
    for name, text in typed.items():
        setting, lines = BY_NAME[name], text.strip().splitlines()
        if setting.kind is SettingKind.TEXTS and lines:
            values[name] = tuple(parse_field(setting, line.strip()) for line in lines if line.strip())
        elif lines:
            values[name] = parse_field(setting, text.strip())
    return values
