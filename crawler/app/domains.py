"""Domains: add, list, describe, change, pause and remove them."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crawler.app import registration
from crawler.app.action_log import compare_settings, describe_action, format_names, recorded
from crawler.app.database import AppDatabase
from crawler.app.registration import DomainCandidate, get_domain, make_scope, normalize_seeds, parse_typed_url
from crawler.app.rules import describe_rule
from crawler.app.settings import (
    SETTINGS,
    SettingsPatch,
    describe_settings,
    parse_setting_names,
    require_permitted_change,
)
from crawler.app.status import Wait, find_wait
from crawler.app.tags import find_or_make_tags, get_tag
from crawler.core.budget.hours import find_opening
from crawler.core.domain import Domain, DomainStatus, is_own_server, parse_stored_hours
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.response import Fetched
from crawler.core.http.urls import get_authority
from crawler.core.retention import has_same_retention
from crawler.core.tags import LayeredSettings, Tag
from crawler.errors import BadInput, Conflict, name_field
from crawler.format.values import format_when
from crawler.plugins import require_policy
from crawler.runtime.secrets import explain_missing
from crawler.settings import Settings
from crawler.store import claim, domains, record
from crawler.store.domain_settings import check_settings, merge_layers
from crawler.store.domains import DomainSummary, list_domains_after

if TYPE_CHECKING:
    from crawler.app.root_probe import RootProbe  # a crawl does not need it
    from crawler.store.retention.estimate import SizeEstimate

MAX_CONCURRENT_PROBES = 16  # of different servers; requests to one server are sequential


@dataclass(frozen=True, slots=True)
class AddResult:
    """The result of registering one name.

    domain: the registered domain, or the one that already has this name; None if there is none.
    error: why nothing was registered; error_field: as in BadInput.  warning: what was wrong with the root.
    root_response: the response of the root, only with `keep_responses`; the first visit uses it and is charged for it.
    """

    name: str
    domain: Domain | None = None
    is_new: bool = False
    warning: str = ""
    error: str = ""
    error_field: str = ""
    root_response: Fetched | None = field(default=None, repr=False)

    @property
    def new_domain(self) -> Domain:
        """Return the newly registered domain. Raises BadInput with the error, and Conflict if it already existed."""
        if self.domain is None:
            raise BadInput(self.error, field=self.error_field)
        if not self.is_new:
            raise Conflict(self.error)
        return self.domain


@recorded("add domain")
async def add_domains(
    db: AppDatabase,
    names: Sequence[str],
    patch: SettingsPatch,
    *,
    tags: Sequence[str] = (),
    offline: bool = False,
    keep_responses: bool = False,
    max_probe_time: timedelta | None = None,
    at: datetime,
) -> list[AddResult]:
    """Register names or URLs, all with the same settings and tags; return the results in the same order.

    The roots of unregistered domains are fetched concurrently, unless `offline` or the settings prevent it.
    keep_responses: return the responses of the roots without charging them; the caller must record visits of them, or
    charge their requests.
    max_probe_time: domains whose roots take longer are not registered; None for no limit.
    Raises BadInput for invalid settings.
    """
    layers = make_layers(patch, db.settings, tags=await find_or_make_tags(db, tags))
    domain_settings = merge_layers(layers)
    require_permitted_change(DomainSettings(), domain_settings)
    registered = {name: domain for name in names if (domain := await _find_registered(db, name)) is not None}
    added = []
    async with _open_root_probe(db, domain_settings, at=at) as probe:
        unregistered = [name for name in names if name not in registered]
        candidates = iter(
            await _probe_all(*(probe, unregistered, domain_settings), offline=offline, max_time=max_probe_time, at=at)
        )
        for name in names:
            candidate = registered[name] if name in registered else next(candidates)
            if isinstance(candidate, DomainCandidate):
                candidate = await _find_existing(db, candidate, at=at) or candidate
            if isinstance(candidate, Domain):
                added.append(AddResult(name, candidate, error=str(domains.build_already_registered_error(candidate))))
                continue
            try:
                if isinstance(candidate, BadInput):
                    raise candidate
                response = candidate.root_response if keep_responses else None
                if response is not None:
                    probe.exclude_request(response)
                    candidate = candidate.exclude_root_response()
                allow_private = domain_settings.allow_private
                is_own = is_own_server(candidate.authority, candidate.addresses, allow_private=allow_private)
                delay = db.settings.choose_delay(domain_settings, is_own=is_own) if candidate.requests else timedelta(0)
                domain = await registration.register_candidate(db, candidate, layers, delay=delay, at=at)
                added.append(AddResult(name, domain, is_new=True, warning=candidate.warning, root_response=response))
            except BadInput as error:
                added.append(AddResult(name, error=str(error), error_field=error.field))
    names = [each.domain.authority for each in added if each.domain is not None and each.is_new]
    values = compare_settings(DomainSettings(), domain_settings)["new"]
    describe_action(object=format_names(names), new=values, is_change=bool(names))
    return added


def make_domain_settings(patch: SettingsPatch, settings: Settings) -> DomainSettings:
    """Return the settings of a new domain without tags. Raises BadInput."""
    return merge_layers(make_layers(patch, settings))


def make_layers(patch: SettingsPatch, settings: Settings, *, tags: Sequence[Tag] = ()) -> LayeredSettings:
    """Return the settings of a new domain. Raises BadInput, with the field."""
    with name_field("settings"):
        seeds = {"seeds": tuple(map(parse_typed_url, patch.seeds))} if patch.seeds else {}
        layers = LayeredSettings(tags=tuple(tags)).set_own(dict(patch.values) | seeds)
        domain_settings = merge_layers(layers)
        check_settings(domain_settings)
        require_policy(domain_settings.revisit, settings.plugins)
        return layers


async def _find_existing(db: AppDatabase, candidate: DomainCandidate, *, at: datetime) -> Domain | None:
    """Return the registered domain to which a candidate's root redirects, and charge it for the probe; else None."""
    existing = await domains.find_domain(db, candidate.authority)
    if existing is not None and candidate.requests:
        delay = db.settings.choose_delay(existing.settings, is_own=existing.is_own_server)
        await domains.delay_next_request(db, existing, delay=delay)
        await registration.charge_probe(db, existing, candidate, at=at)
    return existing


async def _find_registered(db: AppDatabase, name: str) -> Domain | None:
    """Return the domain that is already registered under this name, without fetching its root."""
    try:
        return await domains.find_domain(db, get_authority(parse_typed_url(name)))
    except BadInput:
        return None


@asynccontextmanager
async def _open_root_probe(
    db: AppDatabase, domain_settings: DomainSettings, *, at: datetime
) -> AsyncIterator["RootProbe"]:
    """Open a probe for the roots of domains with these settings. Its requests are charged to the shared budget."""
    from crawler.app.root_probe import RootProbe
    from crawler.fetch import Http

    settings, agent, private = db.settings, db.settings.user_agent_header, domain_settings.allow_private
    requests_left = await claim.count_shared_requests_left(db, settings.shared_budget, at=at)
    async with Http(user_agent=agent, allow_private=private, max_body_bytes=settings.max_body_bytes) as http_client:
        probe = RootProbe(
            http_client,
            delay=settings.choose_delay(domain_settings, is_own=False),
            agent=settings.user_agent,
            max_requests=requests_left,
            language=domain_settings.language,
            exempt=settings.exempt_addresses,
            private_delay=settings.choose_delay(domain_settings, is_own=private),
            deadline=settings.request_timeout,
        )
        try:
            yield probe
        finally:
            if requests_left is not None and probe.requests:
                usage = {"requests": probe.requests, "received_bytes": probe.received_bytes}
                await claim.charge_shared_budget(db, **usage, at=at)


async def _probe_all(
    probe: "RootProbe",
    names: Sequence[str],
    domain_settings: DomainSettings,
    *,
    offline: bool,
    max_time: timedelta | None,
    at: datetime,
) -> list[DomainCandidate | BadInput]:
    seconds = None if max_time is None else max_time.total_seconds()
    skip_reason = _explain_skipped_probe(domain_settings, at=at)
    max_requests = 0 if domain_settings.bytes_per_day == 0 else domain_settings.budget_per_day
    slots = asyncio.Semaphore(MAX_CONCURRENT_PROBES)

    async def probe_one(name: str) -> DomainCandidate | BadInput:
        try:
            if offline or skip_reason:
                candidate = registration.parse_candidate(name)
                warning = "" if offline else f"{candidate.authority} was not fetched: {skip_reason}"
                return replace(candidate, warning=warning)
            async with asyncio.timeout(seconds), slots:
                return await registration.probe_domain(probe, name, max_requests=max_requests)
        except TimeoutError:
            return BadInput(f"its root page did not arrive within {seconds:g} s: add it again, or without fetching it")
        except BadInput as error:
            return error

    async with asyncio.TaskGroup() as tasks:
        probes = [tasks.create_task(probe_one(name)) for name in names]
    return [task.result() for task in probes]


def _explain_skipped_probe(domain_settings: DomainSettings, *, at: datetime) -> str:
    """Return why the root of a domain with these settings is not fetched, as a clause; empty if it is."""
    if domain_settings.is_special:
        return "its credentials, proxy and certificates are only used by a crawl"
    opens_at = find_opening(parse_stored_hours(domain_settings.hours), at)
    return f"it is outside its crawl hours until {format_when(opens_at, now=at)}" if opens_at > at else ""


async def list_domains(db: AppDatabase, *, tag: str | None = None) -> list[DomainSummary]:
    """Return all domains by name, or those with a tag, with counts of their pages. Raises as `get_tag` does."""
    name = (await get_tag(db, tag)).tag.name if tag else None
    listed = await domains.list_domains(db)
    return [each for each in listed if name is None or name in (tag.name for tag in each.domain.tags)]


def list_missing_secrets(
    settings: Settings, domain_settings: DomainSettings, *, unless: DomainSettings | None = None
) -> list[str]:
    """Return a sentence for each missing secret of a domain. unless: earlier settings, whose secrets are skipped."""
    before = unless.credentials.references if unless is not None else ()
    references = [each for each in domain_settings.credentials.references if each not in before]
    return [why for reference in references if (why := explain_missing(settings, reference))]


def get_domain_state(listed: DomainSummary, *, at: datetime) -> str:
    """Return the state of a domain in a word or two."""
    if listed.domain.paused:
        return "paused"
    if listed.holder:
        return "being crawled"
    if find_opening(listed.domain.hours, at) > at:
        return "outside hours"
    return "suspended" if listed.resume_at is not None and listed.resume_at > at else "active"


@dataclass(frozen=True, slots=True)
class DomainDetails:
    """The state of a domain. wait: the result of `find_wait`.  storage: the size of its versions."""

    domain: Domain
    status: DomainStatus
    wait: Wait | None
    storage: "SizeEstimate"


async def inspect_domain(db: AppDatabase, name: str, *, at: datetime | None = None) -> DomainDetails:
    """Return the state of a domain at a time (None for now). Raises BadInput, also for a time before its last visit."""
    from crawler.prune import estimate_pruning

    domain = await get_domain(db, name)
    if at is not None:
        await registration.require_after_last_visit(db, [domain], at)
    instant = at or datetime.now(UTC)
    status, wait = await domains.read_status(db, domain, at=instant), await find_wait(db, domain, at=instant)
    return DomainDetails(domain, status, wait, storage=await estimate_pruning(db, domain))


def describe_domain(domain: Domain) -> dict[str, object]:
    """Return a domain for JSON."""
    rules = [describe_rule(rule) for rule in domain.settings.rules]
    return {
        "domain": domain.authority,
        "root": domain.root,
        "aliases": sorted(domain.aliases),
        "paused": domain.paused,
        "registered_at": domain.registered_at,
        "tags": [tag.name for tag in domain.tags],
        "settings": describe_settings(domain.settings) | {"rules": rules},
        "sources": _describe_sources(domain),
    }


def _describe_sources(domain: Domain) -> dict[str, str]:
    """Return where each setting comes from that is not the default: "own", or the name of a tag after "tag "."""
    layers = domain.layers
    sources = {each.key: layers.find_tag(each.name) for each in SETTINGS}
    tagged = {key: f"tag {tag}" for key, tag in sources.items() if tag}
    return {each.key: "own" for each in SETTINGS if each.name in domain.own} | tagged


@recorded("change domain")
async def change_settings(
    db: AppDatabase, domain: Domain, patch: SettingsPatch, *, unset: Sequence[str] = (), at: datetime
) -> Domain:
    """Unset the options in `unset`, then apply the patch; return the changed domain. Raises BadInput.

    The value of an unset option is that of the domain's tags, or else the default. Other processes may change other
    settings at the same time. Seeds are added to the existing ones, and may be paths of the domain.
    """
    names = parse_setting_names(unset)
    if "revisit" in patch.values:
        require_policy(patch.values["revisit"], db.settings.plugins)
    new_seeds = [parse_typed_url(f"{domain.root}{seed[1:]}" if seed.startswith("/") else seed) for seed in patch.seeds]
    others = {name: value for name, value in patch.values.items() if name != "seeds"}

    def change(layers: LayeredSettings) -> LayeredSettings:
        changed = layers.unset(names).set_own(others)
        require_permitted_change(merge_layers(layers), merge_layers(changed))
        if not new_seeds:
            return changed
        scope = make_scope(domain, merge_layers(changed))
        seeds = [*changed.own.get("seeds", ()), *normalize_seeds(scope, new_seeds)]
        return changed.set_own({"seeds": tuple(dict.fromkeys(seeds))})

    return await domains.update_settings(db, domain, change, at=at)


async def estimate_storage(db: AppDatabase, before: Domain, after: Domain) -> "SizeEstimate | None":
    """Return the storage of a changed domain's versions; None if its retention settings did not change."""
    from crawler.prune import estimate_pruning

    return None if has_same_retention(before.settings, after.settings) else await estimate_pruning(db, after)


@recorded("reset clock", "at")
async def reset_clocks(db: AppDatabase, names: Sequence[str], *, at: datetime) -> list[tuple[Domain, datetime | None]]:
    """Set the time of visits later than `at` to `at`; return the domains, each with the last such time or None."""
    selected = [await get_domain(db, name) for name in names]
    return [(domain, await record.reset_clock(db, domain, at=at)) for domain in selected]


@recorded("pause domain")
async def set_paused(db: AppDatabase, names: Sequence[str], *, paused: bool) -> list[Domain]:
    """Pause or resume domains; return them. Raises BadInput for an unknown name, without any change."""
    selected = [await get_domain(db, name) for name in names]
    for domain in selected:
        await domains.set_paused(db, domain, paused=paused)
    describe_action(name="pause domain" if paused else "resume domain")
    return [dataclasses.replace(domain, paused=paused) for domain in selected]


@recorded("remove domain")
async def remove_domains(db: AppDatabase, names: Sequence[str]) -> list[Domain]:
    """Delete domains with all their data; return them. Raises BadInput for an unknown name, without any change."""
    selected = [await get_domain(db, name) for name in names]
    for domain in selected:
        await domains.remove(db, domain)
    return selected
