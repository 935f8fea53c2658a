"""recrawl domains add, and the registration of what `recrawl crawl` meets for the first time."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crawler.app.registration import FoundDomain, RootProbe, charge, look_up, register, unasked, url_of
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say
from crawler.cli.session import Interrupts, with_database
from crawler.cli.settings_options import SettingsPatch, as_document
from crawler.core.budget import opening
from crawler.core.domain import Domain, hours_in, is_own_server
from crawler.core.domain_settings import DomainSettings
from crawler.core.http import Fetched, authority_of
from crawler.core.page_rules import PageRule
from crawler.errors import BadInput
from crawler.format.values import format_when
from crawler.plugins import require_policy
from crawler.runtime.secrets import why_missing
from crawler.settings import settings
from crawler.store import claim, domains
from crawler.store.database import Database

AT_ONCE = 16  # roots asked at a time: each is another server


@dataclass(frozen=True, slots=True)
class Added:
    """What came of one line: the domain, or why there is none."""

    text: str
    domain: Domain | None
    warning: str = ""
    error: str = ""


def add(
    texts: Sequence[str], *, source: str | None, patch: SettingsPatch, offline: bool, at: datetime | None, as_json: bool
) -> int:
    many = source is not None
    wanted = [*texts, *(_lines(source) if source is not None else [])]
    if not wanted:
        raise BadInput("nothing to register: name a URL, or a file with --from")

    async def work(db: Database, _: Interrupts) -> list[Added]:
        return await register_all(db, wanted, patch, offline=offline, at=at or datetime.now(UTC))

    results = with_database(work)
    if not many and len(results) == 1 and results[0].error:
        raise BadInput(results[0].error)
    _show_added(results, as_json=as_json)
    remark_missing_secrets(settings_of(patch))
    return PROBLEM if any(result.domain is None for result in results) else DONE


async def register_all(
    db: Database, texts: Sequence[str], patch: SettingsPatch, *, offline: bool, at: datetime
) -> list[Added]:
    """Register what each text names, their roots asked side by side; what came of each, in their order.

    Raises BadInput for settings that cannot be.
    """
    domain_settings = settings_of(patch)
    known = {text: domain for text in texts if (domain := await _registered(db, text)) is not None}
    unknown = [text for text in texts if text not in known]
    async with _roots(db, domain_settings, at=at) as roots:
        silent = why_unasked(domain_settings, at=at)
        asked = await _found(roots, unknown, offline=offline, silent=silent, most=_most(domain_settings))
    found = iter(asked)
    added = []
    for text in texts:
        try:
            if text in known:
                raise domains.registered_already(known[text])
            what = next(found)
            domain = await _register(db, _or_raise(what), domain_settings, at=at)
            added.append(Added(text, domain, warning=_or_raise(what).warning))
        except BadInput as error:
            added.append(Added(text, None, error=str(error)))
    return added


def remark_missing_secrets(domain_settings: DomainSettings, *, unless: DomainSettings | None = None) -> None:
    """Say beside the answer which secrets of a domain are not there. unless: settings that named them before."""
    before = unless.credentials.references if unless is not None else ()
    for reference in domain_settings.credentials.references:
        why = why_missing(settings(), reference) if reference not in before else ""
        if why:
            remark(f"recrawl: {why}")


async def _registered(db: Database, text: str) -> Domain | None:
    """Return the domain that was registered before by this name, which is not asked whether it may be asked."""
    try:
        return await domains.find(db, authority_of(url_of(text)))
    except BadInput:
        return None


def _lines(source: str) -> list[str]:
    """The names in a file, one a line; blank lines and comments are passed over."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise BadInput(f"{source} cannot be read: {reason}") from error
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


async def _found(
    roots: RootProbe, texts: Sequence[str], *, offline: bool, silent: str, most: int | None
) -> list[FoundDomain | BadInput]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(text: str) -> FoundDomain | BadInput:
        try:
            if offline or silent:
                found = unasked(text)
                return found if offline else replace(found, warning=f"{found.authority} was not asked: {silent}")
            async with turn:
                return await look_up(roots, text, deadline=settings().deadline, most=most)
        except BadInput as error:
            return error

    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(one(text)) for text in texts]
    return [task.result() for task in asked]


def _or_raise(found: FoundDomain | BadInput) -> FoundDomain:
    if isinstance(found, BadInput):
        raise found
    return found


@asynccontextmanager
async def _roots(db: Database, domain_settings: DomainSettings, *, at: datetime) -> AsyncIterator[RootProbe]:
    """What asks the roots of domains with these settings; in the end it is on the account of all domains together."""
    from crawler.fetch import Http

    left = await claim.left_of_shared_budget(db, settings().shared_budget, at=at)
    async with Http(
        user_agent=settings().user_agent,
        allow_private=domain_settings.allow_private,
        max_body_bytes=settings().max_body_bytes,
    ) as web:
        delay = settings().delay_of(domain_settings, is_own=False)
        roots = RootProbe(
            web,
            delay=delay,
            agent=settings().agent,
            left=left,
            language=domain_settings.language,
            exempt=settings().exempt_addresses,
            own_delay=settings().delay_of(domain_settings, is_own=domain_settings.allow_private),
        )
        try:
            yield roots
        finally:
            if left is not None and roots.requests:
                await claim.charge_shared_budget(
                    db, requests=roots.requests, received_bytes=roots.received_bytes, at=at
                )


async def _register(db: Database, found: FoundDomain, domain_settings: DomainSettings, *, at: datetime) -> Domain:
    is_own = is_own_server(found.authority, found.addresses, allow_private=domain_settings.allow_private)
    delay = settings().delay_of(domain_settings, is_own=is_own) if found.requests else timedelta(0)
    return await register(db, found, domain_settings, delay=delay, at=at)


def _most(domain_settings: DomainSettings) -> int | None:
    """Requests that a new domain's budget allows today; None: no limit."""
    return 0 if domain_settings.bytes_per_day == 0 else domain_settings.budget_per_day


def why_unasked(domain_settings: DomainSettings, *, at: datetime) -> str:
    """Why a domain with these settings is registered without asking it, as part of a sentence; empty if it is asked."""
    if domain_settings.is_special:
        return "only its crawl uses its credentials, proxy and certificates"
    opens_at = opening(hours_in(domain_settings.hours), at)
    return f"its hours are closed until {format_when(opens_at, now=at)}" if opens_at > at else ""


def settings_of(patch: SettingsPatch) -> DomainSettings:
    """The settings of a domain that is registered now."""
    domain_settings = patch.applied_to(DomainSettings())
    require_policy(domain_settings.revisit, settings().plugins)
    return replace(domain_settings, seeds=tuple(map(url_of, patch.seeds)))


def warn_of_no_contact(domain_settings: DomainSettings) -> None:
    """Whoever runs a public site should be able to reach whoever has it crawled."""
    if not settings().contact and not domain_settings.allow_private:
        remark("recrawl: sites cannot tell who crawls them: set RECRAWL_CONTACT to your URL or address")


async def ask_and_register(
    db: Database, text: str, patch: SettingsPatch, *, offline: bool, at: datetime
) -> tuple[Domain, Fetched | None]:
    """Register one domain, with a remark on what its root said. With the root's answer, if its page was had just now.

    That answer is on nobody's account: its look pays for it. Raises BadInput.
    """
    domain_settings = settings_of(patch)
    async with _roots(db, domain_settings, at=at) as roots:
        silent, most = why_unasked(domain_settings, at=at), _most(domain_settings)
        (found,) = map(_or_raise, await _found(roots, [text], offline=offline, silent=silent, most=most))
        existing = await domains.find(db, found.authority)  # typed by a name that was not known as an alias
        if existing is None and found.answer is not None:
            roots.leave_out(found.answer)
            found = found.without_answer()
    if existing is not None:
        if found.requests:
            await domains.probed(db, existing, delay=settings().delay_of(existing.settings, is_own=existing.is_own))
            await charge(db, existing, found, at=at)
        return existing, None
    domain = await _register(db, found, domain_settings, at=at)
    warn_of_no_contact(domain_settings)
    remark(f"Registered {domain.root}{_also(domain)}")
    if found.warning:
        remark(found.warning)
    return domain, found.answer


async def charge_request(db: Database, domain: Domain, answer: Fetched, *, at: datetime) -> None:
    """Put a request that no look was made of on the accounts of its domain and of all together."""
    taken = {"requests": 1, "received_bytes": answer.received_bytes}
    await claim.charge(db, domain, **taken, at=at)
    if settings().shared_budget.is_limited:
        await claim.charge_shared_budget(db, **taken, at=at)


def _also(domain: Domain) -> str:
    return f" (also {', '.join(sorted(domain.aliases))})" if domain.aliases else ""


def _show_added(results: Sequence[Added], *, as_json: bool) -> None:
    for result in results:
        if result.error:
            remark(f"recrawl: {result.text}: {result.error}")
        if result.warning:
            remark(result.warning)
    if as_json:
        print_json(
            {
                "registered": [
                    described(result.domain) | ({"warning": result.warning} if result.warning else {})
                    for result in results
                    if result.domain is not None
                ],
                "failed": [{"name": result.text, "error": result.error} for result in results if result.error],
            }
        )
        return
    for result in results:
        if result.domain is not None:
            say(f"Registered {result.domain.root}{_also(result.domain)}")
    if any(result.domain is not None and not result.warning for result in results):
        remark("Next: recrawl crawl, or a running stack begins with it within five minutes")


def described(domain: Domain) -> dict[str, object]:
    """A domain for JSON."""
    return {
        "domain": domain.authority,
        "root": domain.root,
        "aliases": sorted(domain.aliases),
        "paused": domain.paused,
        "registered_at": domain.registered_at,
        "settings": as_document(domain.settings)
        | {
            "rules": [described_rule(rule) for rule in domain.settings.rules],
        },
    }


def described_rule(rule: PageRule) -> dict[str, object]:
    """A rule for JSON; null where it says nothing."""
    return {
        "pattern": rule.pattern,
        "least_seconds": seconds(rule.least),
        "most_seconds": seconds(rule.most),
        "weight": rule.weight,
        "once": rule.once,
        "max_pages": rule.max_pages,
        "ignore": rule.view.ignore,
        "watch": rule.view.watch,
        "ignore_text": rule.view.ignore_text,
        "render": rule.render,
    }


def seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()
