"""The handlers of the forms: each calls the function of crawler.app that a command calls, and returns its outcome."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from crawler.app import domains, imports, page_list, page_values, rules, screenshots
from crawler.app.blocks import BlockPickRequest, PickAction, add_pick_rule
from crawler.app.database import AppDatabase
from crawler.app.domains import Domain
from crawler.app.page_list import PageAction
from crawler.app.registration import get_domain, parse_typed_url
from crawler.app.revisits import RefreshResult, Url, recrawl, try_to_recrawl
from crawler.app.settings import BY_NAME, SettingsPatch
from crawler.app.status import format_wait
from crawler.clock import Clock
from crawler.errors import BadInput
from crawler.format.domain_settings import format_rule
from crawler.format.values import format_count
from crawler.server.ui.fields import parse_value
from crawler.server.ui.links import SERVER_LINKS

TARGET_SETTINGS = ("budget_per_day", "target_freshness", "max_age", "bytes_per_day")  # of the form "Add a domain"
MAX_DIGITS = 10
IMPORT_SECONDS, MAX_PROBE_TIME = 20.0, timedelta(seconds=10)  # shorter than in the API, because a browser waits
MAX_PROBLEMS = 5  # of an import, in its message
DONE = {
    PageAction.BOOST: f"{page_list.BOOST_WEIGHT:g} times as important, by rules",
    PageAction.ONCE: "revisited only on request, by rules",
    PageAction.EXCLUDE: "excluded; the next crawl run applies this",
}
VALUE_FIELDS = ("name", "selector", "unit", "mark", "pattern")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a form.

    run_url: the address of the crawl run that it started, or empty.  next_page: the page to show; empty for the
    page of the domain.
    """

    message: str
    domain: Domain | None = None
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
    values = {name: parse_value(BY_NAME[name], form[name]) for name in TARGET_SETTINGS if form.get(name, "").strip()}
    if form.get("allow_private"):
        values["allow_private"] = True
    (added,) = await domains.add_domains(db, [address], SettingsPatch(values), at=at)
    domain, name = added.new_domain, added.new_domain.authority
    run_url = await try_to_recrawl(db, domain, f"{domain.root}*")
    then = "its first crawl has started" if run_url else f"no local stack is running, so run recrawl crawl {name}"
    warning = f" {added.warning}." if added.warning else ""
    return Outcome(f"{name} is registered; {then}.{warning}", domain, is_well=not added.warning, run_url=run_url)


async def import_domains(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Register the domains and add the pages of a list. Raises BadInput."""
    names = imports.parse_import(form.get("text", ""))
    if not names:
        raise BadInput("enter one web address per line, or paste an OPML document or a sitemap")
    patch, until = SettingsPatch({"allow_private": True} if form.get("allow_private") else {}), time.monotonic()
    result = await imports.import_names(
        *(db, names, patch),
        offline=bool(form.get("offline")),
        may_continue=lambda: time.monotonic() < until + IMPORT_SECONDS,
        max_probe_time=MAX_PROBE_TIME,
        at=at,
    )
    done = [
        f"{format_count(len(result.registered), 'domain')} registered",
        f"{format_count(result.pages, 'page')} added",
    ]
    problems = [f"{name}: {why}" for name, why in result.failed.items()] + result.warnings
    shown = "; ".join([*done, *problems[:MAX_PROBLEMS]])
    more = f"; and {len(problems) - MAX_PROBLEMS} more problems" if len(problems) > MAX_PROBLEMS else ""
    return Outcome(f"{shown}{more}.", is_well=not problems, next_page=get_previous_page(form))


async def remove_domain(db: AppDatabase, form: Form, _at: datetime) -> Outcome:
    """Remove a domain if its name was typed as confirmation. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    if form.get("confirmed", "").strip().casefold() != domain.authority:
        raise BadInput(f"{domain.authority} was not removed: type its name to confirm that you want to delete its data")
    await domains.remove_domains(db, [domain.authority])
    return Outcome(f"{domain.authority} was removed.", domain, next_page=SERVER_LINKS.domains())


async def set_paused(db: AppDatabase, form: Form, _at: datetime, *, paused: bool) -> Outcome:
    """Pause or resume a domain."""
    domain = await find_domain(db, form.get("name", ""))
    await domains.set_paused(db, [domain.authority], paused=paused)
    return Outcome(f"{domain.authority} is {'paused' if paused else 'active'}.", domain)


async def refresh(db: AppDatabase, form: Form, _at: datetime) -> Outcome:
    """Make the pages of a path due now. Raises BadInput."""
    domain = await find_domain(db, form.get("name", ""))
    requested = await recrawl(db, domain.authority, path=form.get("what", ""))
    return _describe_recrawl(requested, f"{requested.subject} due now", get_previous_page(form))


async def act_on_pages(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Recrawl, boost, exclude or no longer revisit the selected pages of a domain. Raises BadInput."""
    domain, back = await find_domain(db, form.get("name", "")), get_previous_page(form)
    try:
        action = PageAction(form.get("action", ""))
    except ValueError as error:
        raise BadInput("choose an action for the selected pages") from error
    result = await page_list.act_on_pages(db, domain, action, form.get("url", "").splitlines(), at=at)
    pages = f"{format_count(result.pages, 'page')} {'is' if result.pages == 1 else 'are'}"
    if result.recrawl is not None:
        return _describe_recrawl(result.recrawl, f"{pages} due now", back)
    return Outcome(f"{pages} now {DONE[action]}.", result.domain, next_page=back)


def _describe_recrawl(requested: RefreshResult, what: str, back: str) -> Outcome:
    """Return the outcome of requested visits: what is due, and what happens to it."""
    domain, wait = requested.domain, requested.wait
    then = f"no local stack is running, so run {requested.command} or recrawl up"
    if wait is not None and wait.reason.is_obstacle:
        then = f"they have to wait: {domain.authority} {format_wait(wait, domain, now=datetime.now(UTC))}"
    elif requested.run_url:
        then = "the local stack fetches them"
    return Outcome(f"{what}; {then}.", domain, run_url=requested.run_url, next_page=back)


async def take_screenshot(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Take a screenshot of a page now. Raises BadInput and CrawlerError."""
    url, _ = await screenshots.take_screenshot(db, parse_url(form.get("url", "")), clock=Clock.from_instant(at))
    return Outcome("The screenshot was taken.", next_page=SERVER_LINKS.screenshots(url))


async def make_rule(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Add the rule for a picked block, or extend the rule of the same pattern. Raises BadInput."""
    url = parse_url(form.get("url", ""))
    pick = parse_block_pick(form)
    changed = await add_pick_rule(db, await get_domain(db, url), pick, at=at)
    rule = next(each for each in changed.settings.rules if each.pattern == pick.pattern)
    return Outcome(f"The rule was added: {format_rule(rule)}.", changed, next_page=SERVER_LINKS.page(url))


async def add_value(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Add a value to the rule of its pattern. Raises BadInput."""
    url, request = parse_url(form.get("url", "")), parse_value_request(form)
    if not request.name:
        raise BadInput("give the value a name, such as price")
    changed = await page_values.add_value(db, await get_domain(db, url), request, at=at)
    message = f"The value {request.name} is read from now on; its pages are due."
    return Outcome(message, changed, next_page=SERVER_LINKS.page(url))


async def remove_value(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Remove a value from the rules that read it. Raises BadInput."""
    url, name = parse_url(form.get("url", "")), form.get("name", "")
    domain = await get_domain(db, url)
    for pattern in form.get("pattern", "").splitlines():
        domain = await page_values.remove_value(db, domain, pattern, name, at=at)
    return Outcome(f"The value {name} is no longer read.", domain, next_page=SERVER_LINKS.page(url))


async def remove_rule(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Remove a rule. Raises BadInput."""
    domain, pattern = await find_domain(db, form.get("name", "")), form.get("pattern", "")
    changed = await rules.remove_rule(db, domain, pattern, at=at)
    next_page = SERVER_LINKS.domain(domain.authority, tab="rules")
    return Outcome(f"The rule for {pattern} was removed.", changed, next_page=next_page)


FORMS: dict[str, Action] = {
    "/domains/add": add_domain,
    "/domains/import": import_domains,
    "/domains/remove": remove_domain,
    "/domains/pause": partial(set_paused, paused=True),
    "/domains/resume": partial(set_paused, paused=False),
    "/refresh": refresh,
    "/pages/act": act_on_pages,
    "/rules/add": make_rule,
    "/screenshots/take": take_screenshot,
    "/rules/remove": remove_rule,
    "/values/add": add_value,
    "/values/remove": remove_value,
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
        version=parse_number(form.get("version", "")),
        picked=parse_number(form.get("picked", "")),
        selector=form.get("selector", "").strip(),
        words=form.get("words", ""),
    )


def parse_value_request(form: Form) -> page_values.ValueRequest:
    """Return the value that a form or URL parameters describe."""
    name, source, unit, mark, pattern = (form.get(key, "").strip() for key in VALUE_FIELDS)
    return page_values.ValueRequest(name, source, unit, mark, pattern)


def parse_number(typed: str) -> int:
    """Return the number that a URL parameter contains, or 0 for anything else."""
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) <= MAX_DIGITS else 0
