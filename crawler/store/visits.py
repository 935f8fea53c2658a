"""Recording: many visits in one transaction, with their pages, snapshots, links, cash, events and due times."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

from psycopg.types.json import Jsonb

from crawler.core import activity, cost
from crawler.core.activity import Activity
from crawler.core.belief import DAY
from crawler.core.change import Change
from crawler.core.compare import Mask
from crawler.core.cost import Costs, Kind
from crawler.core.domain import Hold, Lease
from crawler.core.lifecycle import WITH_OTHERS
from crawler.core.outline import Part
from crawler.core.prior import without_prior
from crawler.core.visit import Link, State, Visit, Wanted
from crawler.errors import LeaseLost
from crawler.store import content, masks, trusts
from crawler.store.budgets import settle_together
from crawler.store.database import Connection, Database
from crawler.store.economy import Books, Stand, load_books, write_books
from crawler.store.frontier import BY_KEY, to_signed
from crawler.store.leases import keep_slots, write_hold
from crawler.store.priors import groups_of
from crawler.store.standards import costs_from, costs_to

RENEW_AND_READ = """
    UPDATE domain_state
       SET leased_until = clock_timestamp() + %(term)s
     WHERE domain_id = %(domain_id)s AND lease_token = %(token)s  -- expiry only lets others take it
 RETURNING next_event, costs, activity_seen, activity_expected, activity_at
"""
ADVANCE = """
    UPDATE domain_state
       SET last_visit_at = greatest(last_visit_at, %(at)s), next_event = %(next_event)s,
           spent_bytes = greatest(spent_bytes + %(bytes)s
               - CASE WHEN budget_day = %(refund_day)s::date THEN %(debited_bytes)s ELSE 0 END, 0),
           spent_requests = greatest(
               spent_requests - CASE WHEN budget_day = %(refund_day)s::date THEN %(refund)s ELSE 0 END, 0),
           refusals = CASE WHEN %(good)s THEN 0 ELSE refusals END,
           costs = %(costs)s, activity_seen = %(seen)s, activity_expected = %(expected)s,
           activity_at = coalesce(%(learnt_at)s, activity_at)
     WHERE domain_id = %(domain_id)s
"""
NEW_PAGES = "COPY page (domain_id, key, url, first_seen_at, prior_no, reason) FROM STDIN (FORMAT BINARY)"
NEW_FRONTIER = """
    COPY frontier (domain_id, key, state, rank, depth, due_at, favoured, url_score) FROM STDIN (FORMAT BINARY)
"""
VISITS = """
    COPY visit (domain_id, key, at, answer, status, reason, change, rung, distance_bits, conditional, requests,
                received_bytes, saved_bytes, elapsed_ms, cash, expected, due_at, price, audit,
                parts)
    FROM STDIN (FORMAT BINARY)
"""
SNAPSHOTS = """
    COPY snapshot (domain_id, key, number, at, title, language, content_type, text, body_digest, text_digest,
                   main_digest, fingerprint, distance_bits) FROM STDIN (FORMAT BINARY)
"""
EVENTS = """
    COPY event (domain_id, number, at, key, url, change, version, distance_bits,
                parts, pieces) FROM STDIN (FORMAT BINARY)
"""
# What a look may leave as it was comes as null.
PAGES = """
    UPDATE page p
       SET status = x.status, reason = x.reason, failures = x.failures, last_look_at = x.at, visits = p.visits + 1,
           evidence_a = x.evidence_a, evidence_b = x.evidence_b,
           moved_to = CASE WHEN x.good AND x.reason <> %(with_others)s THEN x.moved_to
                           ELSE coalesce(x.moved_to, p.moved_to) END,  -- whom a crowd went to tells the next of it
           last_good_at = CASE WHEN x.good THEN x.at ELSE p.last_good_at END,
           last_change_at = CASE WHEN x.changed THEN x.at ELSE p.last_change_at END,
           changes = p.changes + x.changed::int,
           etag = CASE WHEN x.renews THEN x.etag ELSE p.etag END,
           last_modified = CASE WHEN x.renews THEN x.last_modified ELSE p.last_modified END,
           received_bytes = coalesce(x.body_bytes, p.received_bytes),
           version = coalesce(x.version, p.version),
           body_digest = CASE WHEN x.rereads  -- what a change of scope had made us forget
                              THEN (SELECT s.body_digest FROM snapshot s
                                     WHERE s.domain_id = %(domain_id)s AND s.key = p.key AND s.number = p.version)
                              ELSE coalesce(x.body_digest, p.body_digest) END,
           text_digest = coalesce(x.text_digest, p.text_digest),
           main_digest = coalesce(x.main_digest, p.main_digest),
           shape_digest = coalesce(x.shape_digest, p.shape_digest),
           fingerprint = CASE WHEN x.version IS NULL THEN p.fingerprint ELSE x.fingerprint END
      FROM unnest(%(key)s::bytea[], %(at)s::timestamptz[], %(status)s::smallint[], %(reason)s::text[],
                  %(failures)s::smallint[], %(evidence_a)s::float8[], %(evidence_b)s::float8[], %(moved_to)s::bytea[],
                  %(good)s::bool[], %(changed)s::bool[], %(rereads)s::bool[], %(renews)s::bool[], %(etag)s::text[],
                  %(last_modified)s::text[], %(body_bytes)s::int[], %(version)s::int[], %(body_digest)s::bytea[],
                  %(text_digest)s::bytea[], %(main_digest)s::bytea[], %(shape_digest)s::bytea[],
                  %(fingerprint)s::bigint[])
        AS x(key, at, status, reason, failures, evidence_a, evidence_b, moved_to, good, changed, rereads, renews, etag,
             last_modified, body_bytes, version, body_digest, text_digest, main_digest, shape_digest, fingerprint)
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key
"""
FRONTIER = """
    UPDATE frontier f
       SET state = x.state, due_at = x.due_at, wanted = 0, rank = CASE WHEN x.state = 'new' THEN f.rank ELSE 0 END
      FROM unnest(%(key)s::bytea[], %(state)s::text[], %(due_at)s::timestamptz[]) AS x(key, state, due_at)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key
"""
SHALLOWER = """
    UPDATE frontier f SET depth = x.depth
      FROM unnest(%(key)s::bytea[], %(depth)s::smallint[]) AS x(key, depth)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key AND f.depth > x.depth
"""
LINKS = """
    INSERT INTO page_links (domain_id, key, targets, elsewhere, elsewhere_links)
    SELECT %(domain_id)s, x.key, x.targets, string_to_array(x.elsewhere, ' '),
           string_to_array(x.elsewhere_links, ' ')::int[]
      FROM unnest(%(key)s::bytea[], %(targets)s::bytea[], %(elsewhere)s::text[], %(elsewhere_links)s::text[])
        AS x(key, targets, elsewhere, elsewhere_links)
    ON CONFLICT (domain_id, key) DO UPDATE
       SET targets = excluded.targets, elsewhere = excluded.elsewhere, elsewhere_links = excluded.elsewhere_links
"""
MOST_PIECES = 50  # of one change, kept with its event
MOST_PIECE_CHARS = 500
FORGOTTEN = b""  # in place of a body's digest: read it again, whatever it is (store/frontier.py, MAKE_DUE)
REFUSED_LATER = {"robots"}  # what robots.txt refuses is remembered, since it may allow it one day


async def record(
    db: Database,
    lease: Lease,
    visits: Sequence[Visit],
    *,
    max_pages: int,
    refund: int = 0,
    refund_day: date | None = None,
    debited_bytes: int = 0,
    hold: Hold | None = None,
    again: bool = False,
    together: bool = False,
    mask: Mask | None = None,
) -> int:
    """Write everything that the visits (at least one) changed, or nothing. Gives how many new pages were admitted.

    In one transaction: lease checked and renewed, visits, snapshots, pages admitted, cash settled, due times, events.
    max_pages: links beyond that many pages are not admitted and pay the reserve.  refund: requests that were taken
    from the budget of refund_day but not sent.  debited_bytes: of those that the visits received, how many were taken
    from it before.  hold: leave the domain alone, because of one of these visits.
    again: the same was tried before, and nobody knows whether its commit arrived; it is not applied twice.
    together: what it cost counts for all domains too.  mask: of the domain, if the visits taught anything of it.
    Raises LeaseLost where another worker holds the domain: then nothing was written.
    """
    domain_id = lease.domain.id
    async with db.transaction() as connection:
        values = {"domain_id": domain_id, "token": lease.token, "term": lease.term}
        row = await (await connection.execute(RENEW_AND_READ, values)).fetchone()
        if row is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        await keep_slots(connection, lease)
        await connection.execute(BY_KEY)
        if again and await _is_recorded(connection, domain_id, visits[0]):
            return 0
        books = await load_books(connection, domain_id, visits, wishes=lease.domain.wishes)
        admitted = _settle(books, visits, max_pages=max_pages)
        await _write_admitted(connection, domain_id, books, admitted)
        await _write_pages(connection, domain_id, books, visits)
        await _write_links(connection, domain_id, books, visits)
        await write_books(connection, domain_id, books)
        await _write_versions(connection, domain_id, visits)
        next_event, *learnt = row
        events = await _write_events(connection, domain_id, visits, first=next_event)
        await _write_visits(connection, domain_id, visits)
        await trusts.learn_of(connection, domain_id, visits)
        if mask is not None:
            await masks.put(connection, domain_id, mask)
        received = sum(visit.received_bytes for visit in visits)
        unused = refund + sum(1 - visit.requests for visit in visits)
        await connection.execute(
            ADVANCE,
            {
                "domain_id": domain_id,
                "at": max(visit.at for visit in visits),
                "next_event": next_event + events,
                "bytes": received,
                "refund_day": refund_day,
                "refund": unused,
                "debited_bytes": debited_bytes,
                "good": any(visit.is_good for visit in visits) and hold is None,
                **_learnt(visits, *learnt),
            },
        )
        if hold is not None:
            await write_hold(connection, domain_id, hold)
        if together:
            await settle_together(
                connection,
                refund=unused,
                refund_day=refund_day,
                received_bytes=received,
                debited_bytes=debited_bytes,
            )
        return sum(stand.state is State.NEW for _, stand in admitted)


def _learnt(
    visits: Sequence[Visit], costs: dict[str, Any], seen: float, expected: float, at: datetime | None
) -> dict[str, Any]:
    """What a batch teaches about the domain: what looks cost, and how lively it is."""
    told = [visit for visit in visits if visit.expected_change is not None and visit.target.wanted is Wanted.NO]
    last = max((visit.at for visit in told), default=None)
    lively = Activity(seen, expected)
    if last is not None:
        lively = activity.after(
            lively,
            days=(last - at) / DAY if at is not None else 0.0,
            found=sum(visit.change is Change.CHANGED for visit in told),
            expected=sum(visit.expected_change or 0.0 for visit in told),
        )
    return {
        "costs": Jsonb(costs_to(_costs_after(costs_from(costs), visits))),
        "seen": lively.seen,
        "expected": lively.expected,
        "learnt_at": last,
    }


def _costs_after(costs: Costs, visits: Sequence[Visit]) -> Costs:
    for visit in visits:
        if visit.requests and visit.is_good:
            kind = Kind.CONDITIONAL if visit.conditional else Kind.FULL
            costs = cost.learnt(costs, kind, requests=visit.requests, received_bytes=visit.received_bytes)
    return costs


async def _is_recorded(connection: Connection, domain_id: int, visit: Visit) -> bool:
    cursor = await connection.execute(
        "SELECT FROM visit WHERE domain_id = %s AND key = %s AND at = %s", (domain_id, visit.target.key, visit.at)
    )
    return await cursor.fetchone() is not None


def _settle(books: Books, visits: Sequence[Visit], *, max_pages: int) -> list[tuple[Link, Stand]]:
    """Apply the visits to the economy one after the other; gives the pages that they make known."""
    admitted: list[tuple[Link, Stand]] = []
    for visit in visits:
        links = visit.links or ()
        for link in (*links, visit.moved_to) if visit.moved_to else links:
            stand = _meet(books, link, depth=visit.target.depth + 1, max_pages=max_pages)
            if stand is not None:
                stand.found_at = visit.at
                admitted.append((link, stand))
        books.settle(visit)
    books.economy.pay_dividends(books.ordering.weights)
    return admitted


def _meet(books: Books, link: Link, *, depth: int, max_pages: int) -> Stand | None:
    """What a link makes known: a new page, a page that robots.txt refuses, or nothing new."""
    stand = books.stands.get(link.key)
    if stand is not None:
        stand.reach(depth)
        return None
    if link.refusal in REFUSED_LATER and books.tracked < max_pages:
        return books.keep_out(link.key, link.url, depth=depth)
    if link.refusal or books.tracked >= max_pages or not books.has_room_for(link.url):
        return None
    return books.admit(link.key, link.url, depth=depth)


async def _write_admitted(
    connection: Connection, domain_id: int, books: Books, admitted: Iterable[tuple[Link, Stand]]
) -> None:
    known = list(admitted)
    if not known:
        return
    for link, stand in known:
        if not stand.is_out:
            stand.rank = books.rank_of(link.key, books.economy.purses[link.key].net)
    groups = await groups_of(connection, domain_id, [link.url for link, _ in known])
    pages = (
        (domain_id, link.key, link.url, stand.found_at, group, link.refusal if stand.is_out else "")
        for (link, stand), group in zip(known, groups, strict=True)
    )
    frontier = (
        (
            domain_id,
            link.key,
            stand.state.value,
            stand.rank,
            stand.depth,
            stand.due_at,
            stand.favoured,
            stand.url_score,
        )
        for link, stand in known
    )
    await _copy(connection, NEW_PAGES, ["int8", "bytea", "text", "timestamptz", "int2", "text"], pages)
    await _copy(
        connection, NEW_FRONTIER, ["int8", "bytea", "text", "int4", "int2", "timestamptz", "bool", "float8"], frontier
    )


async def _write_pages(connection: Connection, domain_id: int, books: Books, visits: Sequence[Visit]) -> None:
    rows = [_page_row(visit, books) for visit in visits]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    await connection.execute(PAGES, columns | {"domain_id": domain_id, "with_others": WITH_OTHERS}, binary=True)
    await connection.execute(
        FRONTIER,
        {
            "domain_id": domain_id,
            "key": columns["key"],
            "state": [visit.state.value for visit in visits],
            "due_at": [None if visit.state is State.NEW else visit.due_at for visit in visits],
        },
    )


def _page_row(visit: Visit, books: Books) -> dict[str, Any]:
    heir = visit.moved_to.key if visit.moved_to else None
    version = visit.snapshot.version if visit.snapshot else None
    prior = visit.target.terms.prior
    evidence = [float(number) for number in without_prior(visit.belief.a, visit.belief.b, prior.a, prior.b)]
    return {
        "key": visit.target.key,
        "at": visit.at,
        "status": visit.status,
        "reason": clean(visit.reason),
        "failures": min(visit.failures, 32_000),
        "evidence_a": evidence[0],
        "evidence_b": evidence[1],
        "moved_to": heir if heir in books.stands else None,  # out of scope or beyond the limits: it moved away
        "good": visit.is_good,
        "changed": visit.change is Change.CHANGED,
        "rereads": visit.is_good and visit.links is not None and not version and _is_forgotten(visit),
        "renews": visit.validators is not None,
        "etag": clean(visit.validators.etag) if visit.validators else None,
        "last_modified": clean(visit.validators.last_modified) if visit.validators else None,
        "body_bytes": visit.body_bytes,
        "version": version.number if version else None,
        "body_digest": version.body_digest if version else None,
        "text_digest": version.text_digest if version else None,
        "main_digest": version.main_digest if version else None,
        "shape_digest": version.shape_digest if version else None,
        "fingerprint": to_signed(version.fingerprint) if version else None,
    }


def _is_forgotten(visit: Visit) -> bool:
    return visit.target.version is not None and visit.target.version.body_digest == FORGOTTEN


async def _write_links(connection: Connection, domain_id: int, books: Books, visits: Sequence[Visit]) -> None:
    changed = {
        visit.target.key: (visit.gives or (), visit.elsewhere or ())
        for visit in visits
        if visit.links is not None
        and (visit.gives or (), visit.elsewhere or ()) != (visit.target.outlinks, visit.target.elsewhere)
    }
    if changed:
        await connection.execute(
            LINKS,
            {
                "domain_id": domain_id,
                "key": list(changed),
                "targets": [b"".join(keys) for keys, _ in changed.values()],
                # An array of arrays would have to be rectangular; an authority holds no space.
                "elsewhere": [" ".join(name for name, _ in elsewhere) for _, elsewhere in changed.values()],
                "elsewhere_links": [" ".join(str(many) for _, many in e) for _, e in changed.values()],
            },
            binary=True,
        )
    nearer = books.nearer
    if nearer:
        depths = [books.stands[key].depth for key in nearer]
        await connection.execute(SHALLOWER, {"domain_id": domain_id, "key": nearer, "depth": depths})


async def _write_versions(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    fresh = [(visit, visit.snapshot) for visit in visits if visit.snapshot is not None]
    if not fresh:
        return
    await content.put(connection, domain_id, {s.version.body_digest: s.body for _, s in fresh})
    await _copy(
        connection,
        SNAPSHOTS,
        ["int8", "bytea", "int4", "timestamptz", *["text"] * 4, *["bytea"] * 3, "int8", "int2"],
        (
            (
                domain_id,
                visit.target.key,
                shot.version.number,
                visit.at,
                clean(shot.title),
                clean(shot.language),
                clean(shot.content_type),
                clean(shot.text),
                shot.version.body_digest,
                shot.version.text_digest,
                shot.version.main_digest,
                to_signed(shot.version.fingerprint),
                shot.distance_bits,
            )
            for visit, shot in fresh
        ),
    )


async def _write_events(connection: Connection, domain_id: int, visits: Sequence[Visit], *, first: int) -> int:
    """Number the changes on from `first`, without gaps; gives how many there were."""
    events = [visit for visit in visits if _is_event(visit)]
    await _copy(
        connection,
        EVENTS,
        ["int8", "int8", "timestamptz", "bytea", "text", "text", "int4", "int2", "text", "jsonb"],
        (
            (
                domain_id,
                first + n,
                visit.at,
                visit.target.key,
                visit.target.url,
                visit.change.value,
                _version_number(visit),
                visit.verdict.distance_bits,
                _parts(visit),
                _pieces(visit),
            )
            for n, visit in enumerate(events)
        ),
    )
    return len(events)


def _parts(visit: Visit) -> str:
    """What changed, by name: text, link, image, title, meta."""
    return " ".join(sorted(visit.verdict.left.parts))


def _pieces(visit: Visit) -> Jsonb | None:
    """The first pieces that changed, so that nobody has to work out the difference again."""
    left = visit.verdict.left
    if not left:
        return None
    pieces: list[tuple[Part, str | None, str | None]]
    pieces = [(before.part, before.text, after.text) for before, after in left.replaced]
    pieces += [(place.part, place.text, None) for place in left.removed]
    pieces += [(place.part, None, place.text) for place in left.added]
    return Jsonb([[part.value, _cut(before), _cut(after)] for part, before, after in pieces[:MOST_PIECES]])


def _cut(piece: str | None) -> Any:
    return clean(piece and piece[:MOST_PIECE_CHARS])


def _is_event(visit: Visit) -> bool:
    match visit.change:
        case Change.FIRST | Change.CHANGED | Change.BACK:
            return True
        case Change.MOVED | Change.GONE:
            return visit.target.version is not None  # nobody misses what was never there
        case Change.SAME | Change.COSMETIC | Change.UNKNOWN:
            return False


def _version_number(visit: Visit) -> int:
    if visit.snapshot is not None:
        return visit.snapshot.version.number
    return visit.target.version.number if visit.target.version else 0


async def _write_visits(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    types = ["int8", "bytea", "timestamptz", "text", "int2", "text", "text", "text", "int2", "bool", "int2"]
    types += ["int4", "int4", "int4", "int8", "float8", "timestamptz", "float8", "bool", "text"]
    await _copy(connection, VISITS, types, (_visit_row(domain_id, visit) for visit in visits))


def _visit_row(domain_id: int, visit: Visit) -> tuple[Any, ...]:
    return (
        domain_id,
        visit.target.key,
        visit.at,
        visit.answer,
        visit.status,
        clean(visit.reason),
        visit.change.value,
        visit.verdict.rung.value,
        visit.verdict.distance_bits,
        visit.conditional,
        visit.requests + visit.again,
        visit.received_bytes,
        visit.saved_bytes,
        round(visit.elapsed.total_seconds() * 1000),
        visit.target.cash if visit.gives is not None else 0,
        visit.expected_change,
        visit.due_at,
        visit.target.terms.price,
        visit.target.wanted is Wanted.BY_AUDIT,
        _parts(visit),
    )


async def _copy(connection: Connection, statement: str, types: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in rows:
            await copy.write_row(row)


def clean(text: str | None) -> Any:
    """Text as Postgres takes it: no NUL, no lone surrogate, whatever a server sent."""
    if text is None or (text.isprintable() and text.isascii()):
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
