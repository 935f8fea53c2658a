"""Domains: add, list, describe, change, pause and remove them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from crawler.app.database import Database
from crawler.app.registration import (
    FoundDomain,
    charge,
    domain_named,
    home_seeds,
    look_up,
    register,
    require_not_before_last_visit,
    scope_of,
    unasked,
    url_of,
)
from crawler.app.root_probe import RootProbe
from crawler.app.rules import describe_rule
from crawler.app.settings import SettingsPatch, describe_settings, without_settings
from crawler.app.status import Wait, why_not_now
from crawler.core.budget.hours import opening
from crawler.core.domain import Domain, DomainStatus, hours_in, is_own_server
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.response import Fetched
from crawler.core.http.urls import authority_of
from crawler.core.retention import keeps_alike
from crawler.errors import BadInput
from crawler.format.values import format_when
from crawler.plugins import require_policy
from crawler.prune import foretold
from crawler.runtime.secrets import why_missing
from crawler.settings import Settings
from crawler.store import claim, domains, record
from crawler.store.domains import Listed
from crawler.store.domains import every as list_domains
from crawler.store.retention.estimate import SizeEstimate

ROOTS_AT_ONCE = 16  # asked at a time: each is another server


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one name that was to be registered.

    domain: that was registered, or that has this name already; None if there is none.  error: why nothing was
    registered.  warning: what was wrong with the root.  answer: the page of the root, for the first visit, which pays
    for it; only where it was asked for.
    """

    name: str
    domain: Domain | None = None
    is_new: bool = False
    warning: str = ""
    error: str = ""
    answer: Fetched | None = field(default=None, repr=False)

    @property
    def new_domain(self) -> Domain:
        """The domain that was registered now. Raises BadInput, with the error, where none was."""
        if self.domain is None or not self.is_new:
            raise BadInput(self.error)
        return self.domain


async def add_domains(
    db: Database,
    names: Sequence[str],
    patch: SettingsPatch,
    *,
    offline: bool = False,
    keep_answers: bool = False,
    at: datetime,
) -> list[Added]:
    """Register what each name or URL names, all with the same settings; return what became of each, in their order.

    The roots of those that are unknown are fetched side by side, unless `offline`.  keep_answers: return the pages of
    roots and charge nobody for them; the caller makes visits of
    them, or charges their requests.
    Raises BadInput for settings that cannot be.
    """
    domain_settings = settings_of_new(patch, db.settings)
    known = {name: domain for name in names if (domain := await _registered(db, name)) is not None}
    added = []
    async with _open_roots(db, domain_settings, at=at) as roots:
        unknown = [name for name in names if name not in known]
        found = iter(await _look_up_all(roots, unknown, domain_settings, offline=offline, at=at))
        for name in names:
            what = known[name] if name in known else next(found)
            if isinstance(what, FoundDomain) and (existing := await domains.find(db, what.authority)) is not None:
                if what.requests:
                    await domains.probed(
                        db, existing, delay=db.settings.delay_of(existing.settings, is_own=existing.is_own)
                    )
                    await charge(db, existing, what, at=at)
                what = existing  # named by a name of it that was not known
            if isinstance(what, Domain):
                added.append(Added(name, what, error=str(domains.registered_already(what))))
                continue
            try:
                if isinstance(what, BadInput):
                    raise what
                answer = what.answer if keep_answers else None
                if answer is not None:
                    roots.leave_out(answer)
                    what = what.without_answer()
                is_own = is_own_server(what.authority, what.addresses, allow_private=domain_settings.allow_private)
                delay = db.settings.delay_of(domain_settings, is_own=is_own) if what.requests else timedelta(0)
                domain = await register(db, what, domain_settings, delay=delay, at=at)
                added.append(Added(name, domain, is_new=True, warning=what.warning, answer=answer))
            except BadInput as error:
                added.append(Added(name, error=str(error)))
    return added


def settings_of_new(patch: SettingsPatch, settings: Settings) -> DomainSettings:
    """Return the settings of a domain that would be registered now. Raises BadInput."""
    domain_settings = patch.applied_to(DomainSettings())
    require_policy(domain_settings.revisit, settings.plugins)
    return replace(domain_settings, seeds=tuple(map(url_of, patch.seeds)))


async def _registered(db: Database, name: str) -> Domain | None:
    """Return the domain that was registered before by this name; its root is not fetched."""
    try:
        return await domains.find(db, authority_of(url_of(name)))
    except BadInput:
        return None


@asynccontextmanager
async def _open_roots(db: Database, domain_settings: DomainSettings, *, at: datetime) -> AsyncIterator[RootProbe]:
    """Open what fetches the roots of domains with these settings; the shared budget is charged in the end."""
    from crawler.fetch import Http  # noqa: PLC0415  aiohttp has 8 MB, and whoever shows pages fetches nothing

    left = await claim.left_of_shared_budget(db, db.settings.shared_budget, at=at)
    async with Http(
        user_agent=db.settings.user_agent,
        allow_private=domain_settings.allow_private,
        max_body_bytes=db.settings.max_body_bytes,
    ) as web:
        roots = RootProbe(
            web,
            delay=db.settings.delay_of(domain_settings, is_own=False),
            agent=db.settings.agent,
            left=left,
            language=domain_settings.language,
            exempt=db.settings.exempt_addresses,
            own_delay=db.settings.delay_of(domain_settings, is_own=domain_settings.allow_private),
            deadline=db.settings.deadline,
        )
        try:
            yield roots
        finally:
            if left is not None and roots.requests:
                await claim.charge_shared_budget(
                    db, requests=roots.requests, received_bytes=roots.received_bytes, at=at
                )


async def _look_up_all(
    roots: RootProbe, names: Sequence[str], domain_settings: DomainSettings, *, offline: bool, at: datetime
) -> list[FoundDomain | BadInput]:
    silent = _why_unasked(domain_settings, at=at)
    most = 0 if domain_settings.bytes_per_day == 0 else domain_settings.budget_per_day
    turn = asyncio.Semaphore(ROOTS_AT_ONCE)

    async def one(name: str) -> FoundDomain | BadInput:
        try:
            if offline or silent:
                found = unasked(name)
                return found if offline else replace(found, warning=f"{found.authority} was not asked: {silent}")
            async with turn:
                return await look_up(roots, name, most=most)
        except BadInput as error:
            return error

    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(one(name)) for name in names]
    return [task.result() for task in asked]


def _why_unasked(domain_settings: DomainSettings, *, at: datetime) -> str:
    """Return why the root of a domain with these settings is not fetched, as part of a sentence; empty if it is."""
    if domain_settings.is_special:
        return "only its crawl uses its credentials, proxy and certificates"
    opens_at = opening(hours_in(domain_settings.hours), at)
    return f"its hours are closed until {format_when(opens_at, now=at)}" if opens_at > at else ""


def missing_secrets(
    settings: Settings, domain_settings: DomainSettings, *, unless: DomainSettings | None = None
) -> list[str]:
    """Return a sentence for each secret of a domain that is not there.

    unless: settings that named secrets before; nothing is said of these.
    """
    before = unless.credentials.references if unless is not None else ()
    asked = [each for each in domain_settings.credentials.references if each not in before]
    return [why for reference in asked if (why := why_missing(settings, reference))]


def domain_state(listed: Listed, *, at: datetime) -> str:
    """Return the state of a domain in a word or two."""
    if listed.domain.paused:
        return "paused"
    if listed.holder:
        return "being crawled"
    if opening(listed.domain.hours, at) > at:
        return "closed"
    return "left alone" if listed.resume_at is not None and listed.resume_at > at else "active"


@dataclass(frozen=True, slots=True)
class DomainDetails:
    """How a domain stands. wait: why nothing of it is fetched now, if so.  storage: what its versions take."""

    domain: Domain
    status: DomainStatus
    wait: Wait | None
    storage: SizeEstimate


async def inspect_domain(db: Database, name: str, *, at: datetime | None = None) -> DomainDetails:
    """Return how a domain stands at an instant; None is now. Raises BadInput for one before its last visit."""
    domain = await domain_named(db, name)
    if at is not None:
        await require_not_before_last_visit(db, [domain], at)
    instant = at or datetime.now(UTC)
    return DomainDetails(
        domain=domain,
        status=await domains.status_of(db, domain, at=instant),
        wait=await why_not_now(db, domain, at=instant),
        storage=await foretold(db, domain),
    )


def describe_domain(domain: Domain) -> dict[str, object]:
    """Return a domain for JSON."""
    rules = [describe_rule(rule) for rule in domain.settings.rules]
    return {
        "domain": domain.authority,
        "root": domain.root,
        "aliases": sorted(domain.aliases),
        "paused": domain.paused,
        "registered_at": domain.registered_at,
        "settings": describe_settings(domain.settings) | {"rules": rules},
    }


async def change_settings(
    db: Database, domain: Domain, patch: SettingsPatch, *, unset: Sequence[str] = (), at: datetime
) -> Domain:
    """Put the named options back at their defaults, then apply the patch; return the changed domain. Raises BadInput.

    Seeds are added to the ones there are, and may be paths of the domain.
    """
    domain_settings = patch.applied_to(without_settings(domain.settings, unset))
    if "revisit" in patch.values:
        require_policy(domain_settings.revisit, db.settings.plugins)
    more = [url_of(f"{domain.root}{seed[1:]}" if seed.startswith("/") else seed) for seed in patch.seeds]
    seeds = [*domain_settings.seeds, *home_seeds(scope_of(domain, domain_settings), more)]
    return await domains.change(db, domain, replace(domain_settings, seeds=tuple(dict.fromkeys(seeds))), at=at)


async def foretell_storage(db: Database, before: Domain, after: Domain) -> SizeEstimate | None:
    """Return what the versions of a changed domain take; None where what is kept of them did not change."""
    return None if keeps_alike(before.settings, after.settings) else await foretold(db, after)


async def reset_clocks(db: Database, names: Sequence[str], *, at: datetime) -> list[tuple[Domain, datetime | None]]:
    """Let visits that are later than `at` count as made then; return the last one of each domain, None without any."""
    found = [await domain_named(db, name) for name in names]
    return [(domain, await record.reset_clock(db, domain, at=at)) for domain in found]


async def set_paused(db: Database, names: Sequence[str], *, paused: bool) -> list[Domain]:
    """Pause domains, or resume them; return them. Raises BadInput for an unknown name, and changes nothing then."""
    found = [await domain_named(db, name) for name in names]
    for domain in found:
        await domains.set_paused(db, domain, paused=paused)
    return found


async def remove_domains(db: Database, names: Sequence[str]) -> list[Domain]:
    """Forget domains and everything about them; return them. Raises BadInput for an unknown name, and removes none."""
    found = [await domain_named(db, name) for name in names]
    for domain in found:
        await domains.remove(db, domain)
    return found
