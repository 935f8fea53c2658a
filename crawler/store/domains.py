"""Registration, settings, status and removal of domains. Changes of pages are only requested from the lease holder."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace
from psycopg.rows import scalar_row
from psycopg.types.json import Jsonb

from crawler.core.domain import Domain, DomainStatus
from crawler.core.domain_settings import BY_NAME, DomainSettings
from crawler.core.freshness.estimates import PRIOR, RateEstimate
from crawler.core.freshness.prior import ALL_KINDS, OTHER_TEMPLATES, KindPrior, classify_site
from crawler.core.freshness.signals import ChangeSignal
from crawler.core.http.urls import Authority, Url
from crawler.core.opic.opic import TOTAL_CASH, Pool
from crawler.core.tags import LayeredSettings, list_own_values
from crawler.errors import BadInput, Conflict, NotFound
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import (
    DOMAIN_COLUMNS,
    SETTING_COLUMNS,
    build_domain,
    build_setting_params,
    find_domains,
    post_signals,
    post_to_inbox,
    read_domain,
    replace_rules,
)
from crawler.store.domain_settings import change_settings, check_settings, merge_layers, update_settings
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
from crawler.store.tags import ADD_TAGS, lock_tags

__all__ = ["change_settings", "update_settings"]  # beside what is defined here

INSERT = f"""
    INSERT INTO domain (authority, scheme, registered_at, own_settings, {", ".join(SETTING_COLUMNS)})
    VALUES (%(authority)s, %(scheme)s, %(at)s, %(own)s, {build_placeholders(SETTING_COLUMNS)}) RETURNING id
"""  # noqa: S608  likewise
INSERT_STATE = """
    INSERT INTO domain_state (domain_id, total_cash, dormant, wake_at, addresses, next_request_at, window_passes)
    VALUES (%s, %s, %s, %s, %s, clock_timestamp() + %s, %s)
"""
INSERT_POOLS = "INSERT INTO pool (domain_id, pool) SELECT %s, unnest(%s::smallint[])"
INSERT_PRIOR = "INSERT INTO prior (domain_id, no, template, a, b) VALUES (%s, 0, %s, %s, %s)"
INSERT_ALIASES = "INSERT INTO domain_alias (authority, domain_id) SELECT unnest(%s::text[]), %s"
DOMAIN_STATUS = """
    SELECT d.state = 'paused', CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END,
           CASE WHEN s.leased_until > clock_timestamp() THEN s.leased_until END,
           s.wake_at, s.paced_until, s.resume_at, s.resume_reason, s.next_request_at, s.last_visit_at,
           EXISTS (SELECT FROM address_slot a WHERE a.address = ANY(s.addresses) AND a.domain_id <> d.id
                      AND a.held_until > clock_timestamp()),
           EXISTS (SELECT FROM inbox i WHERE i.domain_id = d.id),
           (SELECT count(*) FROM (
                SELECT FROM frontier f WHERE f.domain_id = %(domain_id)s AND f.request_reason IN (1, 4) AND NOT EXISTS (
                    SELECT FROM url_list u JOIN page p ON p.domain_id = %(domain_id)s AND p.key = u.key
                     WHERE u.domain_id = %(domain_id)s AND u.key = f.key
                       AND page_category(f.state, p.version, u.kind) = 'unread_list')
                LIMIT %(most_requested)s) r),
           coalesce(d.budget_per_day, l.budget_per_day),
           coalesce(d.budget_per_day, l.budget_per_day)
               - CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date THEN s.spent_requests ELSE 0 END,
           d.bytes_per_day - CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date
                                  THEN s.spent_bytes ELSE 0 END
      FROM domain d JOIN domain_state s ON s.domain_id = d.id LEFT JOIN domain_plan l ON l.domain_id = d.id
     WHERE d.id = %(domain_id)s
"""
MAX_REQUESTED = 100_000  # requested pages are counted up to this number
CLOCK_SKEW = timedelta(minutes=1)  # tolerated difference between the clocks of machines
IS_NAMED = """
    d.authority = ANY(%(names)s)
    OR d.id IN (SELECT a.domain_id FROM domain_alias a WHERE a.authority = ANY(%(names)s)) ORDER BY d.id
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
"""  # noqa: S608  only our own columns are inserted
DELAY_NEXT_REQUEST = """
    UPDATE domain_state SET next_request_at = greatest(next_request_at, clock_timestamp() + %s) WHERE domain_id = %s
"""
WAKE_PACED = """
    UPDATE domain_state SET wake_at = least(wake_at, %(at)s) WHERE domain_id = ANY(%(ids)s) AND paced_until > %(at)s
"""
REFRESH = """
    INSERT INTO inbox (domain_id, kind, payload, arrived_at)
    SELECT %(id)s, 'refresh', %(payload)s, %(at)s
     WHERE NOT EXISTS (SELECT FROM inbox WHERE domain_id = %(id)s AND kind = 'refresh' AND payload = %(payload)s)
"""
# Keeps the number of positions whose rows pruning has deleted from the feed, for `recrawl db check`.
KEEP_FORGOTTEN_POSITIONS = """
    UPDATE ledger SET forgotten_places = forgotten_places + s.first_event - 1
      FROM domain_state s WHERE s.domain_id = %s AND s.first_event > 1
"""
# Tables whose rows `remove` deletes, because they have no foreign key to domain.
DOMAIN_TABLES = (
    *("page", "frontier", "cash", "page_links", "snapshot", "content", "event", "visit", "visit_pack"),
    *("page_fingerprint", "fingerprint_band", "announced", "page_value"),
)
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

# The row of the kind, or else that of all kinds. A kind without revisited domains is not used.
KIND_PRIOR = """
    SELECT kind, a, b, pages, domains FROM kind_prior
     WHERE kind IN (%(kind)s, %(all)s) AND domains > 0 ORDER BY kind = %(all)s LIMIT 1
"""
PRIOR_COLUMNS = "kind text, a float8, b float8, pages bigint, domains int"
WRITE_PRIORS = f"""
    INSERT INTO kind_prior (kind, a, b, pages, domains, planned_at)
    SELECT x.*, %(at)s FROM {build_unnest(PRIOR_COLUMNS)}
    ON CONFLICT (kind) DO UPDATE SET {build_upsert_set(("a", "b", "pages", "domains", "planned_at"))}
"""  # noqa: S608  only our own columns are inserted


class DomainSummary(Struct, frozen=True):
    """A domain with the figures that lists of domains show."""

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
    resume_at: datetime | None  # until when it is suspended: its server requested it or did not respond
    importance: float  # among all domains, from the links between them in the last plan, times its weight


async def register(
    db: Database,
    authority: Authority,
    *,
    scheme: str,
    aliases: Collection[Authority] = (),
    addresses: Collection[str] = (),
    domain_settings: DomainSettings | LayeredSettings,
    delay: timedelta = timedelta(0),
    at: datetime,
) -> Domain:
    """Register a domain: all cash of its OPIC economy is dormant, and its seeds are in the inbox.

    domain_settings: its own settings, or those with its tags, which are read again.

    The prior of its pages is that of `read_kind_prior`.
    addresses: the network addresses of its name, for which a claim takes slots.  delay: real time until the next
    request to its server, if the registration has sent one.
    Raise BadInput if the authority or one of the aliases is registered already, or if a pattern or text of the settings
    is invalid.
    """
    if isinstance(domain_settings, LayeredSettings):
        layers = domain_settings
    else:
        layers = LayeredSettings(list_own_values(domain_settings))
    async with db.transaction() as connection:
        layers = replace(layers, tags=await lock_tags(connection, [tag.name for tag in layers.tags]))
        domain_settings = merge_layers(layers)
        check_settings(domain_settings)
        # Until the end of the transaction, no other registration can take one of the names.
        await connection.execute("LOCK TABLE domain IN SHARE ROW EXCLUSIVE MODE")
        for existing in await find_domains(connection, IS_NAMED, {"names": [authority, *aliases]}):
            raise build_already_registered_error(existing)
        values = build_setting_params(domain_settings) | {"authority": authority, "scheme": scheme, "at": at}
        values["own"] = sorted(layers.own.keys() & BY_NAME.keys())
        domain_id = await fetch_value(connection, INSERT, values)
        window = domain_settings.importance_window
        state = (domain_id, TOTAL_CASH, TOTAL_CASH, at, sorted(addresses), delay or None, window)
        await connection.execute(INSERT_STATE, state)
        prior = (await read_kind_prior(connection, classify_site(authority))).prior
        await connection.execute(INSERT_POOLS, (domain_id, [pool.value for pool in Pool]))
        await connection.execute(INSERT_PRIOR, (domain_id, OTHER_TEMPLATES, prior.a, prior.b))
        await connection.execute(INSERT_ALIASES, ([alias for alias in aliases if alias != authority], domain_id))
        await connection.execute(ADD_TAGS, ([tag.name for tag in layers.tags], [domain_id]))
        await replace_rules(connection, domain_id, domain_settings.rules)
        seeds = dict.fromkeys([f"{scheme}://{authority}/", *domain_settings.seeds])
        await post_to_inbox(connection, domain_id, "seed", {"urls": list(seeds)}, at=at)
        domain = await read_domain(connection, domain_id)
        assert domain is not None
        return domain


async def delay_next_request(db: Database, domain: Domain, *, delay: timedelta) -> None:
    """Postpone the next request by at least `delay` from now, after a request outside any lease."""
    await execute(db, DELAY_NEXT_REQUEST, (delay, domain.id))


def build_already_registered_error(domain: Domain) -> Conflict:
    """Return the error for registering a domain twice."""
    name = domain.authority
    return Conflict(f"{name} is already registered; recrawl domains set {name} changes its settings, crawl fetches it")


async def find_domain(db: Database, authority: Authority) -> Domain | None:
    """Return the domain with this name or alias, or None."""
    matches = await find_named_domains(db, [authority])
    return matches[0] if matches else None


async def find_named_domains(db: Database, names: Collection[Authority]) -> list[Domain]:
    """Return the domains with one of these names or aliases."""
    return await find_domains(db, IS_NAMED, {"names": list(names)})


async def list_names(db: Database) -> list[Authority]:
    """Return the names and aliases of all domains in alphabetical order."""
    return await fetch_all(db, scalar_row, NAMES)


async def list_domains_after(db: Database, name: str, *, max_count: int) -> list[Domain]:
    """Return the domains after `name` in alphabetical order (keyset paging)."""
    return await find_domains(db, "d.authority > %s ORDER BY d.authority LIMIT %s", (name, max_count))


async def list_domains(db: Database) -> list[DomainSummary]:
    """Return all domains by name, with counts of their pages."""
    rows = await fetch_dicts(db, DOMAIN_LIST)
    field_names = [name for name in DomainSummary.__struct_fields__ if name != "domain"]
    return [DomainSummary(domain=build_domain(row), **{name: row[name] for name in field_names}) for row in rows]


async def set_paused(db: Database, domain: Domain, *, paused: bool) -> None:
    """Pause or resume a domain. The holder of a lease learns of it when it renews the lease."""
    await execute(db, "UPDATE domain SET state = %s WHERE id = %s", ("paused" if paused else "active", domain.id))


async def remove(db: Database, domain: Domain) -> None:
    """Delete a domain and all its data. A lease holder that then records visits finds no lease and writes nothing.

    Its rows in the feed stay, without events, because a position is never reused.
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
    """Put seed URLs into the inbox. before_root: crawl them before the root if that is unfetched."""
    await post_to_inbox(db, domain.id, "seed", {"urls": list(urls), "before_root": before_root}, at=at)


async def request_refresh(db: Database, domain: Domain, *, prefix: Url, at: datetime) -> None:
    """Request a revisit of all pages with a URL prefix. Adds one row to the inbox.

    Does nothing if the inbox already has the same request.
    """
    payload = Jsonb({"prefix": prefix, "full": False})
    await execute(db, REFRESH, {"id": domain.id, "payload": payload, "at": at})


async def read_status(db: Database, domain: Domain, *, at: datetime) -> DomainStatus:
    """Return the status that decides whether the domain can be claimed now. Raise BadInput if it was deleted."""
    row = await fetch_row(db, DOMAIN_STATUS, {"domain_id": domain.id, "at": at, "most_requested": MAX_REQUESTED})
    if row is None:
        raise NotFound(f"{domain.authority} is no longer registered")
    return DomainStatus(*row)


async def find_waiting_domains(
    db: Database, *, at: datetime, only: Collection[Domain] | None = None, requested: bool = False, max_count: int
) -> list[Domain]:
    """Return domains with due or requested pages, with rows in the inbox, or with a last visit in the future, by name.

    only: search only these.  requested: ignore pages that are due but not requested.
    """
    ids = None if only is None else [domain.id for domain in only]
    values = {"at": at, "only": ids, "requested": requested, "most": max_count, "skew": CLOCK_SKEW}
    return await find_domains(db, HAS_WAITING_PAGES, values)


async def wake_domains(db: Database, domains: Collection[Domain], *, at: datetime) -> None:
    """Wake domains that sleep because of the pace of their budgets, for a user who wants them crawled now."""
    await execute(db, WAKE_PACED, {"ids": [domain.id for domain in domains], "at": at})


async def expire_leases(db: Database, *, holder_prefix: str) -> int:
    """End the leases of dead workers before they expire, and return the number of domains.

    holder_prefix: how the names of their holders begin.
    The crawl delay after the last possible request of such a worker still applies to the domain and its addresses.
    Fetches that were not recorded are repeated.
    """
    async with db.transaction() as connection:
        freed = await fetch_all(connection, scalar_row, EXPIRE, (holder_prefix,))
        await connection.execute(FREE_SLOTS, (freed,))
        return len(freed)


async def add_signals(db: Database, domain: Domain, signals: Sequence[ChangeSignal], *, at: datetime) -> None:
    """Put change signals into the inbox. Raise BadInput if too many wait already."""
    async with db.transaction() as connection:
        waiting = await fetch_value(connection, WAITING_SIGNALS, (domain.id,))
        if waiting + len(signals) > MAX_WAITING_SIGNALS:
            name = domain.authority
            raise BadInput(f"{waiting:,} signals already wait for {name}; run recrawl crawl {name}")
        await post_signals(connection, domain.id, signals, at=at)


async def read_kind_prior(connection: Connection, kind: str) -> KindPrior:
    """Return the prior for a new domain of this kind of site: that of the kind, of all kinds, or PRIOR.

    The kind of the result says which. PRIOR has kind ALL_KINDS and no domains.
    """
    row = await fetch_row(connection, KIND_PRIOR, {"kind": kind, "all": ALL_KINDS})
    kind, a, b, pages, domains = row or (ALL_KINDS, PRIOR.a, PRIOR.b, 0, 0)
    return KindPrior(kind, RateEstimate(a, b), pages=pages, domains=domains)


async def write_kind_priors(db: Database, kinds: Sequence[KindPrior], *, at: datetime) -> None:
    """Store the priors of kinds of sites. Kinds that are not among them keep their priors."""
    rows = [(each.kind, each.prior.a, each.prior.b, round(each.pages), each.domains) for each in kinds]
    await execute(db, WRITE_PRIORS, split_into_columns(PRIOR_COLUMNS, rows) | {"at": at})
