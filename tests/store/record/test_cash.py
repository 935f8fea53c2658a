"""The OPIC economy in the real store: invariants of random histories, and the meaning of importance."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import timedelta
from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.domain_settings import DomainSettings
from crawler.core.opic.opic import ENDOWMENT
from crawler.core.opic.order import Ordering
from crawler.core.visit.visit import Visit
from crawler.errors import LeaseLost, StoreUnavailable
from crawler.store import domains, record, report
from crawler.store.database import Database
from tests.exact import power_iteration
from tests.store import graphs
from tests.store.conftest import START
from tests.store.graphs import (
    FEW,
    Kind,
    Life,
    Outcome,
    Step,
    Turn,
    begin,
    born,
    handed_out,
    histories,
    in_order,
    looked,
    named,
    ranked,
    recorded,
    rows,
)
from tests.store.made_up import NOT_MODIFIED, html, key, look


async def live(life: Life, step: Step) -> None:
    """Run a step in two batches; the second is selected before the first is recorded."""
    await begin(life, step)
    half = (len(step.outcomes) + 1) // 2
    first = await handed_out(life, half)
    second = await handed_out(life, half, without=[target.key for target in first])
    done = looked(life, first, step.outcomes)
    await overtake(life, done)
    await recorded(life, done)
    await recorded(life, looked(life, second, step.outcomes[half:]))


async def overtake(life: Life, done: list[Visit]) -> None:
    """Check that a worker that lost the lease can record nothing."""
    for late in life.lost:
        with pytest.raises(LeaseLost):
            await record.record_visits(life.db, late, record.Batch(done, max_pages=100))
    life.lost.clear()


@FEW
@given(domain_settings=st.tuples(graphs.domain_settings, graphs.domain_settings), both=st.tuples(histories, histories))
async def test_two_domains_conserve_their_cash_in_any_history(
    db: Database, domain_settings: tuple[DomainSettings, DomainSettings], both: tuple[list[Step], list[Step]]
) -> None:
    lives = [await born(db, named(), wished, START) for wished in domain_settings]
    for steps in zip_longest(*both):
        async with asyncio.TaskGroup() as tasks:
            for life, step in zip(lives, steps, strict=True):
                if step is not None:
                    tasks.create_task(live(life, step))
        assert await report.check_invariants(db) == []
    for life in lives:
        await domains.remove(db, life.domain)


TABLES = ("page", "frontier", "cash", "pool", "domain_state", "page_links", "snapshot", "content", "event", "visit")
# A trigger terminates the connection that writes to a table, which is chosen at run time.
KILLER = """
    CREATE TABLE killed_at (name text);
    CREATE FUNCTION kill() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM killed_at WHERE name = TG_TABLE_NAME) THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
        END IF;
        RETURN NULL;
    END $$;
"""
KILLS = "CREATE TRIGGER kill AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION kill()"
DIGEST = "SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {table} t"


async def deadly(db: Database) -> None:
    async with db.transaction() as connection:
        await connection.execute(KILLER.encode())
        for table in TABLES:
            await connection.execute(KILLS.format(table=table).encode())


async def kill_at(db: Database, table: str) -> None:
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM killed_at")
        await connection.execute("INSERT INTO killed_at VALUES (%s)", (table,))


async def everything(db: Database) -> list[str]:
    """Return a digest of each table of the database."""
    async with db.transaction() as connection:
        cursors = [await connection.execute(DIGEST.format(table=table).encode()) for table in TABLES]
        return [str((await cursor.fetchone() or ("",))[0]) for cursor in cursors]


async def test_a_record_killed_at_any_statement_leaves_no_trace_and_can_be_repeated(db: Database) -> None:
    await deadly(db)
    life = await born(db, named(), DomainSettings(importance_mix=1.0, max_pages=100), START)
    killed = []
    for n, table in enumerate((*TABLES, *TABLES[:5])):
        await begin(life, Step(Turn.GO_ON, Ordering(), ()))
        links = [(n * m) % 14 for m in range(1, 6)]
        outcomes = [Outcome(Kind.GOOD, tuple(links)), Outcome(Kind.MOVED, to=n % 7), Outcome(Kind.GOOD, (n % 5,))]
        done = looked(life, await handed_out(life, 3), outcomes)
        before = await everything(db)
        await kill_at(db, table)
        try:
            await recorded(life, done)
        except StoreUnavailable:
            killed.append(table)
            assert await everything(db) == before
            await kill_at(db, "nothing")
            await recorded(life, done, again=True)
            await recorded(life, done, again=True)  # a commit whose result was lost
        assert await report.check_invariants(db) == []
    assert set(killed) == set(TABLES)


# Page 5 is a leaf, only the root links to page 6, and all importances differ.
SITE = {0: [1, 2, 3, 4, 5, 6, 7], 1: [2, 0], 2: [3, 4], 3: [0], 4: [5, 0], 5: [], 6: [3, 7], 7: [1]}
LONG = timedelta(days=181)  # after that every page is due again


async def read(life: Life, *, among: Collection[int] = tuple(SITE), afresh: bool = False) -> None:
    """Visit these pages in one batch: not modified, or parsed with all their links."""
    life.at += LONG
    wanted = {key(life.domain, n): n for n in among}
    done = [
        look(
            target,
            html(life.domain, SITE[wanted[target.key]]) if afresh else NOT_MODIFIED,
            life.at,
            life.domain,
        )
        for target in await handed_out(life, len(SITE))
        if target.key in wanted
    ]
    assert len(done) == len(wanted) or afresh
    await record.record_visits(life.db, life.lease, record.Batch(done, max_pages=100))


async def settled(db: Database) -> Life:
    """Crawl a domain until its importance has converged."""
    life = await born(db, named(), DomainSettings(importance_mix=1.0, max_pages=100), START)
    for n in range(12):
        await read(life, afresh=n < 3)
    return life


async def importance_of(life: Life) -> list[float]:
    """Return the importance of each page, by number."""
    life.at += LONG
    found = {target.key: target.importance for target in await handed_out(life, len(SITE))}
    return [found[key(life.domain, n)] for n in SITE]


def places(importance: Sequence[float]) -> list[int]:
    """Return the pages, the most important first."""
    return sorted(range(len(importance)), key=lambda n: -importance[n])


@pytest.mark.soak
async def test_two_hundred_revisits_of_a_page_do_not_raise_its_importance(db: Database) -> None:
    life = await settled(db)
    before = await importance_of(life)

    for _ in range(200):
        await read(life, among=[6])

    after = await importance_of(life)
    assert places(after) == places(before)
    assert after[6] <= before[6] * 1.02
    await in_order(life)


@pytest.mark.soak
async def test_importance_does_not_depend_on_how_often_a_page_is_visited(db: Database) -> None:
    evenly, unevenly = await settled(db), await settled(db)
    for _ in range(12):
        await read(evenly)
        await read(unevenly)
        for _ in range(9):
            await read(unevenly, among=[2, 5, 6])  # ten times as often as the others

    exact = np.array(list(power_iteration(SITE).values())) * len(SITE)
    for life in (evenly, unevenly):
        found = np.array(await importance_of(life))
        assert places(found.tolist()) == places(exact.tolist())
        assert np.abs(found / exact - 1).max() <= 0.08


async def test_a_leaf_pays_the_virtual_page_which_pays_all_pages(db: Database) -> None:
    life = await settled(db)
    before = await cash_of(life)

    await read(life, among=[5])

    after = await cash_of(life)
    gained = [after[n] - before[n] for n in SITE if n != 5]
    assert min(gained) == max(gained) == after[5]
    assert abs(before[5] - len(SITE) * after[5]) < len(
        SITE
    )  # the remainder of the division stays with the virtual page
    await in_order(life)


async def test_a_page_that_starts_to_redirect_passes_on_its_history_and_cash(db: Database) -> None:
    life = await settled(db)
    cash, history = await cash_of(life), await histories_of(life)

    await move(life, 3, to=2)

    after, received = await cash_of(life), await histories_of(life)
    assert set(cash) - set(after) == {3}
    assert after[2] >= cash[2] + cash[3] - ENDOWMENT  # the endowment of one of them is dormant again
    assert received[2] > 0.9 * (history[2] + history[3])


async def test_children_of_an_unmodified_page_keep_their_importance_for_months(db: Database) -> None:
    life = await settled(db)
    before = await importance_of(life)

    for _ in range(12):
        await read(life, among=[0, 1, 6])

    after = await importance_of(life)
    assert set(await cash_of(life)) == set(SITE)
    assert places(after) == places(before)


async def test_history_follows_a_chain_of_moves(db: Database) -> None:
    life = await settled(db)
    before = await histories_of(life)

    await move(life, 1, to=2)
    await move(life, 3, to=1)

    after = await histories_of(life)
    assert set(before) - set(after) == {1, 3}
    assert after[2] > 0.9 * (before[1] + before[2] + before[3])
    await in_order(life)


async def test_moves_in_one_batch_pay_the_end_of_the_chain(db: Database) -> None:
    life = await settled(db)
    before = await histories_of(life)

    await move(life, 1, to=2)
    await move(life, 1, 4, 7, to=3)  # page 1 moves for the third time

    after = await histories_of(life)
    assert set(before) - set(after) == {1, 4, 7}
    assert after[3] > 0.9 * (before[3] + before[4] + before[7])
    await in_order(life)


async def move(life: Life, *pages: int, to: int) -> None:
    life.at += LONG
    keys = {key(life.domain, n) for n in pages}
    moved = [target for target in await handed_out(life, len(SITE)) if target.key in keys]
    await recorded(life, looked(life, moved, [Outcome(Kind.MOVED, to=to)] * len(moved)))


async def cash_of(life: Life) -> dict[int, int]:
    """Return the cash of each page in the economy, by number."""
    found = {row["key"]: row["cash"] for row in await ranked(life)}
    return {n: cash for n in SITE if (cash := found[key(life.domain, n)]) is not None}


async def histories_of(life: Life) -> dict[int, float]:
    """Return the history of each page in the economy, by number."""
    found = await rows(life, "SELECT key, history FROM cash WHERE domain_id = %s")
    received = dict(found)
    return {n: received[key(life.domain, n)] for n in SITE if key(life.domain, n) in received}
