"""Checks of the database's invariants. Each finding is a sentence with figures.

All checks read the database in one transaction, as it was at its start, so crawls may run in the meantime.
"""

from typing import Any

from msgspec import Struct

from crawler.core.budget.hours import find_opening
from crawler.core.domain import parse_stored_hours
from crawler.core.domain_settings import SETTINGS, get_value
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import read_domain
from crawler.store.domains import DOMAIN_TABLES
from crawler.store.rows import fetch_dicts, fetch_number, fetch_rows

MAX_EXAMPLES = 3  # in one finding, besides the total count

ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
DOMAINS = "SELECT id, authority FROM domain ORDER BY id"

CASH_TOTALS = """
    SELECT s.total_cash::numeric AS total_cash, s.virtual_page_cash::numeric + s.dormant AS kept,
           coalesce((SELECT sum(c.net::numeric) FROM cash c WHERE c.domain_id = %(domain_id)s), 0) AS net,
           coalesce((SELECT sum(p.pages::numeric * p.dividend) FROM pool p
                      WHERE p.domain_id = %(domain_id)s), 0) AS dividends
      FROM domain_state s WHERE s.domain_id = %(domain_id)s
"""
POOLS = """
    SELECT coalesce(p.pool, c.pool) AS pool, coalesce(p.pages, 0) AS pages, coalesce(c.rows, 0) AS rows
      FROM (SELECT pool, pages FROM pool WHERE domain_id = %(domain_id)s) p
      FULL JOIN (SELECT pool, count(*) AS rows FROM cash WHERE domain_id = %(domain_id)s GROUP BY pool) c
        ON c.pool = p.pool
     WHERE coalesce(p.pages, 0) <> coalesce(c.rows, 0)
     ORDER BY 1
"""
# Each of these statements returns what breaks a rule: pages, by URL (or by key without one), or fingerprints.
WRONG_VERSION = """
    SELECT coalesce(p.url, encode(s.key, 'hex')) AS page,
           format('version %%s, newest snapshot %%s', coalesce(p.version, 0), coalesce(s.newest, 0)) AS figure
      FROM (SELECT key, url, version FROM page WHERE domain_id = %(domain_id)s) p
      FULL JOIN (SELECT key, max(number) AS newest FROM snapshot WHERE domain_id = %(domain_id)s GROUP BY key) s
        ON s.key = p.key
     WHERE coalesce(p.version, 0) <> coalesce(s.newest, 0) OR p.key IS NULL
"""
# An empty body digest requests a full recrawl of the page.
WRONG_DIGEST = """
    SELECT p.url AS page,
           concat_ws(', ', CASE WHEN p.body_digest IS NULL OR p.body_digest NOT IN ('', s.body_digest) THEN 'body' END,
                           CASE WHEN p.text_digest IS DISTINCT FROM s.text_digest THEN 'text' END,
                           CASE WHEN p.main_digest IS DISTINCT FROM s.main_digest THEN 'main text' END,
                           CASE WHEN p.fingerprint IS DISTINCT FROM s.fingerprint THEN 'fingerprint' END) AS figure
      FROM page p JOIN snapshot s ON s.domain_id = %(domain_id)s AND s.key = p.key AND s.number = p.version
     WHERE p.domain_id = %(domain_id)s AND p.version > 0
       AND (p.body_digest IS NULL OR p.body_digest NOT IN ('', s.body_digest)
            OR (p.text_digest, p.main_digest, p.fingerprint)
               IS DISTINCT FROM (s.text_digest, s.main_digest, s.fingerprint))
"""
STRAY_VISITS = """
    SELECT encode(v.key, 'hex') AS page, format('%%s visits', count(*)) AS figure
      FROM every_visit v LEFT JOIN page p ON p.domain_id = %(domain_id)s AND p.key = v.key
     WHERE v.domain_id = %(domain_id)s AND p.key IS NULL
     GROUP BY v.key
"""
# The fingerprints of pages, and no others, are in each of their four bands.
WRONG_BANDS = """
    SELECT to_hex(fingerprint) AS page, format('%%s bands', coalesce(b.bands, 0)) AS figure
      FROM (SELECT DISTINCT fingerprint FROM page_fingerprint WHERE domain_id = %(domain_id)s) p
      FULL JOIN (SELECT fingerprint, count(*) FILTER (WHERE band = fingerprint_band(fingerprint, band / 65536)) AS bands
                   FROM fingerprint_band WHERE domain_id = %(domain_id)s GROUP BY fingerprint) b USING (fingerprint)
     WHERE p IS NULL OR coalesce(b.bands, 0) <> 4
"""
# The first page that is due before its domain wakes. A domain with rows in its inbox can be claimed at any time.
EARLIEST_DUE = """
    SELECT s.wake_at, s.paced_until, d.hours, p.url AS page, x.due_at
      FROM domain_state s
      JOIN domain d ON d.id = s.domain_id
     CROSS JOIN LATERAL (
           SELECT f.key, coalesce(f.due_at, s.paced_until) AS due_at FROM frontier f
            WHERE f.domain_id = %(domain_id)s
              AND (f.due_at IS NOT NULL OR f.boosted OR f.request_reason IN (1, 4) OR f.section NOT IN (
                  SELECT no FROM prior WHERE domain_id = %(domain_id)s AND deferred_until IS NOT NULL))
            ORDER BY 2, 1 LIMIT 1) x
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = x.key
     WHERE s.domain_id = %(domain_id)s AND s.paced_until IS NOT NULL
       AND (s.wake_at IS NULL OR s.wake_at > greatest(x.due_at, s.paced_until))
       AND NOT EXISTS (SELECT FROM inbox WHERE domain_id = %(domain_id)s)
"""
EVENTS = """
    SELECT s.first_event, s.next_event, s.stamped_event, e.events, e.lowest, e.highest, f.stamped, f.highest_stamped
      FROM domain_state s,
           LATERAL (SELECT count(*) AS events, min(number) AS lowest, max(number) AS highest
                      FROM event WHERE domain_id = %(domain_id)s) e,
           LATERAL (SELECT count(*) AS stamped, max(number) AS highest_stamped
                      FROM feed WHERE domain_id = %(domain_id)s) f
     WHERE s.domain_id = %(domain_id)s
"""
DISORDERLY_FEED = """
    SELECT position, number FROM (
        SELECT position, number,
               coalesce(lag(number) OVER (ORDER BY position),
                        (SELECT first_event - 1 FROM domain_state WHERE domain_id = %(domain_id)s)) AS before
          FROM feed WHERE domain_id = %(domain_id)s) f
     WHERE number <> before + 1
     ORDER BY position LIMIT 1
"""
# Deleted changes leave gaps in the positions. Their number is checked, but not which positions are missing.
FEED = """
    SELECT count(*) AS rows, coalesce(max(position), 0) AS highest,
           coalesce((SELECT sum(first_event - 1) FROM domain_state), 0)::bigint
               + coalesce((SELECT forgotten_places FROM ledger), 0) AS forgotten
      FROM feed
"""
SHARED_NAMES = "SELECT a.authority FROM domain_alias a JOIN domain d ON d.authority = a.authority"
ORPHANS = "SELECT count(*) AS rows FROM {table} t WHERE NOT EXISTS (SELECT FROM domain d WHERE d.id = t.domain_id)"
COUNT_BROKEN = "SELECT page, figure, count(*) OVER () AS many FROM ({statement}) broken ORDER BY page LIMIT %(shown)s"


def _build_rule_query(table: str, figure: str, broken: str, *joins: str) -> str:
    """Return a statement for the pages whose rows `t` of a table break a rule.

    figure, broken: SQL expressions: what to show of the row, and the condition under which it breaks the rule.
    joins: further tables that they use.
    """
    page = "" if table == "page" else "LEFT JOIN page p ON p.domain_id = %(domain_id)s AND p.key = t.key"
    name = "t.url" if table == "page" else "coalesce(p.url, encode(t.key, 'hex'))"
    return f"""
        SELECT {name} AS page, {figure} AS figure FROM {table} t {" ".join(joins)} {page}
         WHERE t.domain_id = %(domain_id)s AND {broken}
    """  # noqa: S608  only our own expressions are inserted


CASH = "LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = t.key"
CONTENT = "LEFT JOIN content c ON c.domain_id = %(domain_id)s AND c.digest = t.body_digest"
FRONTIER = "LEFT JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = t.key"
CANONICAL = "LEFT JOIN page l ON l.domain_id = %(domain_id)s AND l.key = t.canonical AND l.canonical IS NULL"
LIST = "LEFT JOIN url_list l ON l.domain_id = %(domain_id)s AND l.key = t.list_key"
NEWEST = "JOIN snapshot s ON s.domain_id = %(domain_id)s AND s.key = t.key AND s.number = t.version"
MOVE_TARGET = "LEFT JOIN page n ON n.domain_id = %(domain_id)s AND n.key = t.moved_to"
POOL = "JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = t.pool"
SOURCES = "CROSS JOIN (SELECT count(*) AS many FROM domain_source WHERE domain_id = %(domain_id)s) o"
STATE = "JOIN domain_state s ON s.domain_id = %(domain_id)s"
# For each rule, the message and the statement that finds the pages that break it.
PAGE_RULES = {
    "negative_cash": (
        "pages have negative cash",
        _build_rule_query("cash", "(t.net + q.dividend)::text", "t.net + q.dividend < 0", POOL),
    ),
    "outside_economy": (
        "pages are missing from the OPIC economy",
        _build_rule_query("frontier", "t.state", "t.state IN ('unfetched', 'fetched') AND c.key IS NULL", CASH),
    ),
    "inside_economy": (
        "pages should not be in the OPIC economy",
        _build_rule_query(
            "cash",
            "coalesce(f.state, 'no state')",
            "(f.key IS NULL OR f.state NOT IN ('unfetched', 'fetched'))",
            FRONTIER,
        ),
    ),
    "wrong_pool": (  # pools, from 0: unfetched, fetched, unfetched and boosted, fetched and boosted
        "pages are in the wrong pool",
        _build_rule_query(
            "cash",
            "format('%%s, in pool %%s', f.state, t.pool)",
            "f.state IN ('unfetched', 'fetched') AND t.pool <> (f.state = 'fetched')::int + 2 * f.boosted::int",
            FRONTIER,
        ),
    ),
    "unknown_source": (
        "pages count change signals of sources that their domain does not have",
        _build_rule_query(
            "page",
            "format('%%s, of %%s', octet_length(t.signals), o.many)",
            "octet_length(t.signals) > o.many",
            SOURCES,
        ),
    ),
    "future_clock": (  # set to the domain's clock at a visit; that clock never goes back
        "pages have a clock ahead of their domain's clock",
        _build_rule_query("cash", "format('%%s after %%s', t.clock, s.clock)", "t.clock > s.clock", STATE),
    ),
    "stateless": ("pages have no state", _build_rule_query("page", "'no state'", "f.key IS NULL", FRONTIER)),
    "pageless": ("rows of the frontier have no page", _build_rule_query("frontier", "t.state", "p.key IS NULL")),
    "never_due": (
        "pages have no due time although they are not unfetched",
        _build_rule_query("frontier", "t.state", "t.state <> 'unfetched' AND t.due_at IS NULL"),
    ),
    "wrong_version": ("pages have a version other than that of their newest snapshot", WRONG_VERSION),
    "wrong_digest": ("pages have digests other than those of their newest snapshot", WRONG_DIGEST),
    "lost_content": (
        "snapshots have lost their body",
        _build_rule_query("snapshot", "format('version %%s', t.number)", "t.is_stored AND c.digest IS NULL", CONTENT),
    ),
    "thinned_newest": (
        "pages have lost the text of their newest version",
        _build_rule_query("page", "format('version %%s', t.version)", "NOT s.is_stored", NEWEST),
    ),
    "stray_visits": ("pages have visits but do not exist", STRAY_VISITS),
    "stray_moves": (
        "pages have moved to a page that does not exist",
        _build_rule_query("page", "encode(t.moved_to, 'hex')", "t.moved_to IS NOT NULL AND n.key IS NULL", MOVE_TARGET),
    ),
    "stray_lists": ("URL lists have no page", _build_rule_query("url_list", "t.found_by", "p.key IS NULL")),
    "stray_dates": (
        "dates refer to a page or a URL list that does not exist",
        _build_rule_query("announced", "t.source", "(p.key IS NULL OR l.key IS NULL)", LIST),
    ),
    "stray_duplicates": (
        "pages share the schedule of a page that is not canonical",
        _build_rule_query("page", "encode(t.canonical, 'hex')", "t.canonical IS NOT NULL AND l.key IS NULL", CANONICAL),
    ),
    "wrong_bands": ("fingerprints are not in their four bands, or belong to no page", WRONG_BANDS),
    "future_visits": (
        "pages were visited after the last visit of their domain",
        _build_rule_query("page", "t.last_visit_at::text", "t.last_visit_at > s.last_visit_at", STATE),
    ),
}


class Finding(Struct, frozen=True):
    """A violated invariant. domain: its name, or empty if the invariant concerns all domains."""

    domain: str
    rule: str
    text: str


async def count_domains(db: Database) -> int:
    """Return the number of domains to check."""
    return len(await fetch_rows(db, DOMAINS, {}))


async def check_invariants(db: Database) -> list[Finding]:
    """Check all invariants and return those that are violated."""
    async with db.transaction() as connection:
        await connection.execute(ONE_SNAPSHOT)
        findings = await _check_shared(connection)
        for domain_id, authority in await fetch_rows(connection, DOMAINS, {}):
            findings += await _check_domain(connection, domain_id, authority)
        return findings


async def _check_domain(connection: Connection, domain_id: int, domain: str) -> list[Finding]:
    values = {"domain_id": domain_id}
    problems = await _check_cash(connection, values)
    for rule, (wrong, statement) in PAGE_RULES.items():
        rows = await fetch_dicts(connection, COUNT_BROKEN.format(statement=statement), values | {"shown": MAX_EXAMPLES})
        if rows:
            examples = ", ".join(f"{row['page']} ({row['figure']})" for row in rows)
            more = ", ..." if rows[0]["many"] > len(rows) else ""
            problems.append((rule, f"{rows[0]['many']} {wrong}: {examples}{more}"))
    problems += [*await _check_waking(connection, values), *await _check_events(connection, values)]
    problems += await _check_settings(connection, domain_id)
    return [Finding(domain, rule, text) for rule, text in problems]


async def _check_cash(connection: Connection, values: dict[str, Any]) -> list[tuple[str, str]]:
    problems = []
    rows = await fetch_dicts(connection, CASH_TOTALS, values)
    if not rows:
        return [("cash", "the domain has no state")]
    total_cash, total = int(rows[0]["total_cash"]), int(rows[0]["net"] + rows[0]["dividends"] + rows[0]["kept"])
    if total_cash != total:
        outcome = "missing" if total < total_cash else "in excess"
        difference = f"{abs(total_cash - total):,} is {outcome}"
        problems.append(("cash", f"the cash adds up to {total:,} instead of {total_cash:,}: {difference}"))
    problems += [
        ("pools", f"pool {row['pool']} counts {row['pages']} pages, but {row['rows']} pages are in it")
        for row in await fetch_dicts(connection, POOLS, values)
    ]
    return problems


async def _check_waking(connection: Connection, values: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a problem if the domain sleeps although a page is due, its budget is not spent and its hours are open."""
    for row in await fetch_dicts(connection, EARLIEST_DUE, values):
        possible_at = find_opening(parse_stored_hours(row["hours"]), max(row["due_at"], row["paced_until"]))
        if row["wake_at"] is None or row["wake_at"] > possible_at:
            sleeps = "never wakes" if row["wake_at"] is None else f"sleeps until {row['wake_at']}"
            return [("asleep", f"the domain {sleeps}, but {row['page']} could be fetched at {possible_at}")]
    return []


async def _check_settings(connection: Connection, domain_id: int) -> list[tuple[str, str]]:
    """Return a problem if the settings in force do not follow from the domain's own, those of its tags and defaults."""
    domain = await read_domain(connection, domain_id)
    if domain is None:
        return []
    try:
        expected = domain.layers.merge()
    except ValueError as error:
        return [("settings", f"its settings cannot be combined: {error}")]
    wrong = [each.label for each in SETTINGS if get_value(domain.settings, each) != get_value(expected, each)]
    return [("settings", f"settings do not follow from its tags: {', '.join(wrong)}")] if wrong else []


async def _check_events(connection: Connection, values: dict[str, Any]) -> list[tuple[str, str]]:
    rows = await fetch_dicts(connection, EVENTS, values)
    if not rows:
        return []
    row, problems = rows[0], []
    first, last = row["first_event"], row["next_event"] - 1
    expected_count = last - first + 1
    if row["events"] != expected_count or (expected_count and (row["lowest"], row["highest"]) != (first, last)):
        numbers = f"from {row['lowest']} to {row['highest']}" if row["events"] else "at all"
        problems.append(("events", f"events should be numbered {first} to {last}; there are {row['events']} {numbers}"))
    last_numbered = row["stamped_event"]
    highest = row["highest_stamped"] or first - 1
    if row["stamped"] != last_numbered - first + 1 or highest != last_numbered or last_numbered > last:
        feed_text = f"the feed holds {row['stamped']}, up to number {highest}"
        problems.append(("stamped", f"{last_numbered} of {last} events count as appended to the feed, but {feed_text}"))
    problems += [
        ("feed_order", f"event {wrong['number']} is out of order at position {wrong['position']}")
        for wrong in await fetch_dicts(connection, DISORDERLY_FEED, values)
    ]
    return problems


async def _check_shared(connection: Connection) -> list[Finding]:
    """Check the invariants that concern all domains."""
    findings = []
    feed = (await fetch_dicts(connection, FEED, {}))[0]
    if feed["rows"] + feed["forgotten"] != feed["highest"]:
        forgotten = f" and {feed['forgotten']} deleted ones" if feed["forgotten"] else ""
        text = f"the feed has {feed['rows']} rows{forgotten}, but its last position is {feed['highest']}"
        findings.append(Finding("", "feed_positions", text))
    findings += [
        Finding(row["authority"], "shared_name", f"{row['authority']} is both a domain and an alias of another domain")
        for row in await fetch_dicts(connection, SHARED_NAMES, {})
    ]
    for table in DOMAIN_TABLES:
        if rows := await fetch_number(connection, ORPHANS.format(table=table), {}):
            findings.append(Finding("", "orphans", f"{rows} rows of {table} belong to no domain"))
    return findings
