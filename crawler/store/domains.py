"""Domains as their users register and change them. Nothing here touches a page: that is the lease holder's."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from psycopg.rows import scalar_row
from psycopg.types.json import Jsonb

from crawler.core.domain import Domain, DomainStatus
from crawler.core.domain_settings import DomainSettings, has_same_reading, has_same_weighing
from crawler.core.freshness.estimates import PRIOR, RateEstimate
from crawler.core.freshness.prior import ALL_KINDS, OTHER_TEMPLATES, KindPrior, classify_site
from crawler.core.freshness.signals import ChangeSignal
from crawler.core.http.urls import Authority, Url
from crawler.core.opic.opic import TOTAL_CASH, Pool
from crawler.errors import BadInput
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import (
    DOMAIN_COLUMNS,
    SETTING_COLUMNS,
    build_domain,
    build_setting_params,
    find_domains,
    post_reprice,
    post_signals,
    post_to_inbox,
    read_domain,
    replace_rules,
)
from crawler.store.rows import (
    build_placeholders,
    build_unnest,
    build_upsert_set,
    execute,
    fetch_all,
    fetch_dicts,
    fetch_row,
    fetch_value,
    split_into_columns,
)

INSERT = f"""
    INSERT INTO domain (authority, scheme, registered_at, {", ".join(SETTING_COLUMNS)})
    VALUES (%(authority)s, %(scheme)s, %(at)s, {build_placeholders(SETTING_COLUMNS)})
    RETURNING id
"""  # noqa: S608  likewise
INSERT_POOLS = "INSERT INTO pool (domain_id, pool) SELECT %s, unnest(%s::smallint[])"
INSERT_PRIOR = "INSERT INTO prior (domain_id, no, template, a, b) VALUES (%s, 0, %s, %s, %s)"
INSERT_ALIASES = "INSERT INTO domain_alias (authority, domain_id) SELECT unnest(%s::text[]), %s"
UPDATE = f"""
    UPDATE domain SET {", ".join(f"{column} = %({column})s" for column in SETTING_COLUMNS)}
     WHERE id = %(id)s
"""  # noqa: S608  likewise
DOMAIN_STATUS = """
    SELECT d.state = 'paused', CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END,
           CASE WHEN s.leased_until > clock_timestamp() THEN s.leased_until END,
           s.wake_at, s.paced_until, s.resume_at, s.resume_reason, s.next_request_at, s.last_visit_at,
           EXISTS (SELECT FROM address_slot a WHERE a.address = ANY(s.addresses) AND a.domain_id <> d.id
                      AND a.held_until > clock_timestamp()),
           EXISTS (SELECT FROM inbox i WHERE i.domain_id = d.id),
           (SELECT count(*) FROM (SELECT FROM frontier f WHERE f.domain_id = %(domain_id)s AND f.request_reason IN (1,
           4)
                                   LIMIT %(most_requested)s) r),
           coalesce(d.budget_per_day, l.budget_per_day),
           coalesce(d.budget_per_day, l.budget_per_day)
               - CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date THEN s.spent_requests ELSE 0 END,
           d.bytes_per_day - CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date
                                  THEN s.spent_bytes ELSE 0 END
      FROM domain d JOIN domain_state s ON s.domain_id = d.id LEFT JOIN domain_plan l ON l.domain_id = d.id
     WHERE d.id = %(domain_id)s
"""
MAX_REQUESTED = 100_000
CLOCK_SKEW = timedelta(minutes=1)  # by which the clocks of machines may differ
IS_NAMED = """
    d.authority = ANY(%(names)s)
    OR d.id IN (SELECT a.domain_id FROM domain_alias a WHERE a.authority = ANY(%(names)s)) ORDER BY d.id LIMIT 1
"""
HAS_WAITING_PAGES = """
    (%(only)s::bigint[] IS NULL OR d.id = ANY(%(only)s))
    AND (EXISTS (SELECT FROM inbox i WHERE i.domain_id = d.id)
         OR EXISTS (SELECT FROM domain_state s WHERE s.domain_id = d.id AND s.last_visit_at > %(at)s + %(skew)s)
         OR EXISTS (SELECT FROM frontier f WHERE f.domain_id = d.id AND f.request_reason IN (1, 4))
         OR NOT %(requested)s AND (
            EXISTS (SELECT FROM frontier f WHERE f.domain_id = d.id AND f.state <> 'unfetched' AND f.due_at <= %(at)s)
            OR EXISTS (SELECT FROM frontier f WHERE f.domain_id = d.id AND f.state = 'unfetched'
                          AND coalesce(f.due_at, %(at)s) <= %(at)s)))
    ORDER BY d.authority LIMIT %(most)s
"""
NAMES = "SELECT authority FROM domain UNION SELECT authority FROM domain_alias ORDER BY authority"
DOMAIN_LIST = f"""
    SELECT {DOMAIN_COLUMNS}, s.wake_at, s.resume_at, s.last_visit_at, coalesce(l.importance, d.weight) AS importance,
           CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder,
           n.pages_unfetched AS unfetched, n.pages_fetched AS fetched, n.pages_gone AS gone, n.dead_links,
           n.pages_moved AS moved, n.pages_excluded AS excluded, n.pages_withheld AS withheld
      FROM domain d
      JOIN domain_state s ON s.domain_id = d.id
      LEFT JOIN domain_plan l ON l.domain_id = d.id
      JOIN domain_counts n ON n.domain_id = d.id
     ORDER BY d.authority
"""  # noqa: S608  only our own columns are put in
DELAY_NEXT_REQUEST = """
    UPDATE domain_state SET next_request_at = greatest(next_request_at, clock_timestamp() + %s) WHERE domain_id = %s
"""
# Hours, budgets and limits of today may let the domain be crawled sooner than those of its last release.
WAKE = """
    UPDATE domain_state SET closed_from = NULL, opens_at = NULL, wake_at = least(wake_at, %s) WHERE domain_id = %s
"""
WAKE_PACED = """
    UPDATE domain_state SET wake_at = least(wake_at, %(at)s) WHERE domain_id = ANY(%(ids)s) AND paced_until > %(at)s
"""
REFRESH = """
    INSERT INTO inbox (domain_id, kind, payload, arrived_at)
    SELECT %(id)s, 'refresh', %(payload)s, %(at)s
     WHERE NOT EXISTS (SELECT FROM inbox WHERE domain_id = %(id)s AND kind = 'refresh' AND payload = %(payload)s)
"""
# Tables without a foreign key: their rows go with the domain, here and nowhere else.
# What the feed has forgotten of it stays forgotten; `recrawl db check` counts places that are empty.
KEEP_FORGOTTEN_POSITIONS = """
    UPDATE ledger SET forgotten_places = forgotten_places + s.first_event - 1
      FROM domain_state s WHERE s.domain_id = %s AND s.first_event > 1
"""
DOMAIN_TABLES = (
    *("page", "frontier", "cash", "page_links", "snapshot", "content", "event", "visit", "visit_pack"),
    *("page_fingerprint", "fingerprint_band", "announced"),
)
# The delay after what a dead worker may have sent last still holds, for the domain and its addresses.
EXPIRE = """
    UPDATE domain_state
       SET lease_token = NULL, leased_until = NULL, holder = NULL,
           next_request_at = greatest(next_request_at, least(leased_until, clock_timestamp())
                                                       + delay_s * interval '1 second')
     WHERE starts_with(holder, %s) RETURNING domain_id
"""
FREE_SLOTS = """
    WITH own AS (SELECT address, domain_id FROM address_slot WHERE domain_id = ANY(%s) ORDER BY address FOR UPDATE)
    UPDATE address_slot a SET held_until = least(a.held_until, s.next_request_at)
      FROM own JOIN domain_state s ON s.domain_id = own.domain_id WHERE a.address = own.address
"""
WAITING_SIGNALS = """
    SELECT coalesce(sum(jsonb_array_length(payload->'signals')), 0)::bigint
      FROM inbox WHERE domain_id = %s AND kind = 'signal'
"""
MAX_WAITING_SIGNALS = 100_000  # of one domain

# The kind's own row before that of all; a kind of which no domain was looked at again knows no more than all.
KIND_PRIOR = """
    SELECT kind, a, b, pages, domains FROM kind_prior
     WHERE kind IN (%(kind)s, %(all)s) AND domains > 0 ORDER BY kind = %(all)s LIMIT 1
"""
PRIOR_COLUMNS = "kind text, a float8, b float8, pages bigint, domains int"
WRITE_PRIORS = f"""
    INSERT INTO kind_prior (kind, a, b, pages, domains, planned_at)
    SELECT x.*, %(at)s FROM {build_unnest(PRIOR_COLUMNS)}
    ON CONFLICT (kind) DO UPDATE SET {build_upsert_set(("a", "b", "pages", "domains", "planned_at"))}
"""  # noqa: S608  only our own columns are put in


@dataclass(frozen=True, slots=True)
class DomainSummary:
    """A domain with what a list shows of it."""

    domain: Domain
    unfetched: int
    fetched: int
    gone: int
    dead_links: int
    moved: int
    excluded: int
    withheld: int
    wake_at: datetime | None
    last_visit_at: datetime | None
    holder: str | None
    resume_at: datetime | None  # until when it is left alone, as its server wishes or does not answer
    importance: float  # beside other domains: by their links, as last planned, times its weight


async def register(
    db: Database,
    authority: Authority,
    *,
    scheme: str,
    aliases: Collection[Authority] = (),
    addresses: Collection[str] = (),
    domain_settings: DomainSettings,
    delay: timedelta = timedelta(0),
    at: datetime,
) -> Domain:
    """Register a domain with a whole, closed economy: all coins dormant, the seeds in the inbox.

    Its pages are expected to change as those of its kind of site do, as far as plan has learnt that.
    addresses: those its name leads to; every claim takes their slots.  delay: until its server may be asked again, in
    real time from now, where it was asked for the registration.
    Raises BadInput if the authority, or one of its other names, is registered already, and for a pattern that is not
    used.
    """
    _raise_for_unused(domain_settings.problems)
    async with db.transaction() as connection:
        await connection.execute("LOCK TABLE domain IN SHARE ROW EXCLUSIVE MODE")  # names are free or taken, no race
        for existing in await find_domains(connection, IS_NAMED, {"names": [authority, *aliases]}):
            raise build_already_registered_error(existing)
        values = build_setting_params(domain_settings) | {"authority": authority, "scheme": scheme, "at": at}
        domain_id = await fetch_value(connection, INSERT, values)
        await connection.execute(
            """INSERT INTO domain_state (domain_id, total_cash, dormant, wake_at, addresses, next_request_at,
                                        window_passes)
               VALUES (%s, %s, %s, %s, %s, clock_timestamp() + %s, %s)""",
            (
                domain_id,
                TOTAL_CASH,
                TOTAL_CASH,
                at,
                sorted(addresses),
                delay or None,
                domain_settings.importance_window,
            ),
        )
        prior = (await read_kind_prior(connection, classify_site(authority))).prior
        other_names = [alias for alias in aliases if alias != authority]
        await connection.execute(INSERT_POOLS, (domain_id, [pool.value for pool in Pool]))
        await connection.execute(INSERT_PRIOR, (domain_id, OTHER_TEMPLATES, prior.a, prior.b))
        await connection.execute(INSERT_ALIASES, (other_names, domain_id))
        await replace_rules(connection, domain_id, domain_settings.rules)
        root = f"{scheme}://{authority}/"
        await post_to_inbox(
            connection, domain_id, "seed", {"urls": list(dict.fromkeys([root, *domain_settings.seeds]))}, at=at
        )
        domain = await read_domain(connection, domain_id)
        assert domain is not None
        return domain


def _raise_for_unused(problems: Collection[str]) -> None:
    if problems:
        raise BadInput(next(iter(problems)))


async def delay_next_request(db: Database, domain: Domain, *, delay: timedelta) -> None:
    """Its server was asked just now, outside any lease: the next one begins no sooner than `delay` from now."""
    await execute(db, DELAY_NEXT_REQUEST, (delay, domain.id))


def build_already_registered_error(domain: Domain) -> BadInput:
    """Return the refusal to register a domain twice."""
    name = domain.authority
    return BadInput(f"{name} is registered already: recrawl domains set {name} changes its settings, crawl fetches it")


async def find_domain(db: Database, authority: Authority) -> Domain | None:
    """The domain of that name, or of which it is another name."""
    matches = await find_domains(db, IS_NAMED, {"names": [authority]})
    return matches[0] if matches else None


async def list_names(db: Database) -> list[Authority]:
    """The names of all domains and their other names, in alphabetical order."""
    return await fetch_all(db, scalar_row, NAMES)


async def list_domains_after(db: Database, name: str, *, max_count: int) -> list[Domain]:
    """Domains by name, those that follow `name`, without what they hold."""
    return await find_domains(db, "d.authority > %s ORDER BY d.authority LIMIT %s", (name, max_count))


async def list_domains(db: Database) -> list[DomainSummary]:
    """All domains by name, with counts of their pages."""
    rows = await fetch_dicts(db, DOMAIN_LIST)
    field_names = [each.name for each in fields(DomainSummary) if each.name != "domain"]
    return [DomainSummary(domain=build_domain(row), **{name: row[name] for name in field_names}) for row in rows]


async def change_settings(db: Database, domain: Domain, domain_settings: DomainSettings, *, at: datetime) -> Domain:
    """Change a domain's settings. New seeds go to the inbox, and the domain wakes.

    Where the scope became different, every page is read again in full: unchanged pages hide links that were out of
    scope when they were last read. The table of settings says which ask for that. Raises BadInput for a new pattern
    that is not used; one that was there before may stay while others are taken out.
    """
    _raise_for_unused(set(domain_settings.problems) - set(domain.settings.problems))
    async with db.transaction() as connection:
        if domain.settings.rules != domain_settings.rules:
            # First: whoever holds several rows of a domain begins with the hot one.
            await replace_rules(connection, domain.id, domain_settings.rules)
        await connection.execute(WAKE, (at, domain.id))  # first, likewise
        await connection.execute(UPDATE, build_setting_params(domain_settings) | {"id": domain.id})
        new_seeds = [seed for seed in domain_settings.seeds if seed not in domain.settings.seeds]
        if new_seeds:
            await post_to_inbox(connection, domain.id, "seed", {"urls": new_seeds}, at=at)
        before = domain.settings
        if not has_same_reading(before, domain_settings):
            await post_to_inbox(connection, domain.id, "refresh", {"prefix": domain.root, "full": True}, at=at)
        if before.ordering != domain_settings.ordering:
            keeps_places = before.ordering.order is domain_settings.ordering.order
            await post_to_inbox(connection, domain.id, "reorder", {"keeps_places": keeps_places}, at=at)
        if before.importance_window != domain_settings.importance_window:
            await post_to_inbox(connection, domain.id, "window", {"passes": domain_settings.importance_window}, at=at)
        limits = {(each.budget_per_day, each.bytes_per_day) for each in (before, domain_settings)}
        # The row wakes the domain after a release, too.
        if len(limits) > 1 or not has_same_weighing(before, domain_settings):
            await post_reprice(connection, domain.id, at=at)
        return replace(domain, settings=domain_settings)


async def set_paused(db: Database, domain: Domain, *, paused: bool) -> None:
    """Stop claiming a domain, or begin again. A lease that is held ends by itself."""
    await execute(db, "UPDATE domain SET state = %s WHERE id = %s", ("paused" if paused else "active", domain.id))


async def remove(db: Database, domain: Domain) -> None:
    """Forget a domain and everything about it. A holder's next record finds no lease and writes nothing.

    Its places in the feed stay empty: a position that was given out never means something else later.
    """
    async with db.transaction() as connection:
        await connection.execute("SELECT FROM domain_state WHERE domain_id = %s FOR UPDATE", (domain.id,))
        for table in DOMAIN_TABLES:
            await connection.execute(f"DELETE FROM {table} WHERE domain_id = %s", (domain.id,))  # noqa: S608  our names
        await connection.execute(KEEP_FORGOTTEN_POSITIONS, (domain.id,))
        await connection.execute("DELETE FROM domain WHERE id = %s", (domain.id,))


async def add_seeds(
    db: Database, domain: Domain, urls: Sequence[Url], *, at: datetime, before_root: bool = False
) -> None:
    """Leave URLs for the holder to admit. before_root: they come before a root that was only named by registering."""
    await post_to_inbox(db, domain.id, "seed", {"urls": list(urls), "before_root": before_root}, at=at)


async def request_refresh(db: Database, domain: Domain, *, prefix: Url, at: datetime) -> None:
    """Ask that every page whose URL begins so becomes due at once: one inbox row, however many pages.

    The same wish twice is one wish: overlapping triggers collapse while the first is still in the inbox.
    """
    payload = Jsonb({"prefix": prefix, "full": False})
    await execute(db, REFRESH, {"id": domain.id, "payload": payload, "at": at})


async def read_status(db: Database, domain: Domain, *, at: datetime) -> DomainStatus:
    """Why the domain can or cannot be claimed now. Raises BadInput if it was removed meanwhile."""
    row = await fetch_row(db, DOMAIN_STATUS, {"domain_id": domain.id, "at": at, "most_requested": MAX_REQUESTED})
    if row is None:
        raise BadInput(f"{domain.authority} is not registered any more")
    return DomainStatus(*row)


async def find_waiting_domains(
    db: Database, *, at: datetime, only: Collection[Domain] | None = None, requested: bool = False, max_count: int
) -> list[Domain]:
    """Return domains with pages that are due or requested, with an inbox, or with a last visit that lies ahead.

    only: among these.  requested: leave out those where pages are due and none is requested.  At most so many, by name.
    """
    ids = None if only is None else [domain.id for domain in only]
    values = {"at": at, "only": ids, "requested": requested, "most": max_count, "skew": CLOCK_SKEW}
    return await find_domains(db, HAS_WAITING_PAGES, values)


async def wake_domains(db: Database, domains: Collection[Domain], *, at: datetime) -> None:
    """Wake domains that sleep by the pace of their budgets: somebody names them, and means now."""
    values = {"ids": [domain.id for domain in domains], "at": at}
    await execute(db, WAKE_PACED, values)


async def expire_leases(db: Database, *, holder_prefix: str) -> int:
    """Free the domains held by workers that are known to be dead, without waiting for their leases to run out.

    Gives how many. The delay after what such a worker may have sent last still holds, for the domain and its
    addresses; what it had not recorded is looked at again.
    """
    async with db.transaction() as connection:
        freed = await fetch_all(connection, scalar_row, EXPIRE, (holder_prefix,))
        await connection.execute(FREE_SLOTS, (freed,))
        return len(freed)


async def add_signals(db: Database, domain: Domain, signals: Sequence[ChangeSignal], *, at: datetime) -> None:
    """Leave change signals for the holder to weigh. Raises BadInput where too many wait already."""
    async with db.transaction() as connection:
        waiting = await fetch_value(connection, WAITING_SIGNALS, (domain.id,))
        if waiting + len(signals) > MAX_WAITING_SIGNALS:
            raise BadInput(f"{waiting:,} signals wait for {domain.authority} already: recrawl crawl {domain.authority}")
        await post_signals(connection, domain.id, signals, at=at)


async def read_kind_prior(connection: Connection, kind: str) -> KindPrior:
    """What a page of a new domain of this kind is expected to do: as its kind, or as all do, or PRIOR.

    The kind that is given says which; PRIOR, of which no domain told, has that of ALL_KINDS and no domains.
    """
    row = await fetch_row(connection, KIND_PRIOR, {"kind": kind, "all": ALL_KINDS})
    if row is None:
        return KindPrior(ALL_KINDS, PRIOR, pages=0, domains=0)
    row_kind, a, b, pages, domains = row
    return KindPrior(row_kind, RateEstimate(a, b), pages=pages, domains=domains)


async def write_kind_priors(db: Database, kinds: Sequence[KindPrior], *, at: datetime) -> None:
    """Write what was learnt. A kind of which no domain is left keeps what it was."""
    rows = [(each.kind, each.prior.a, each.prior.b, round(each.pages), each.domains) for each in kinds]
    await execute(db, WRITE_PRIORS, split_into_columns(PRIOR_COLUMNS, rows) | {"at": at})
