"""What a migration does with the rows that it finds."""

import psycopg

from crawler.core.cash import COINS, ENDOWMENT, Ordering
from crawler.store.database import upgrade
from tests.conftest import execute

KEYS = [n.to_bytes(16).hex() for n in range(3)]
NETS = [ENDOWMENT, 7 * ENDOWMENT, -ENDOWMENT // 3]


def test_ranks_and_histories_from_before_orders_are_put_into_the_new_terms(empty_database_url: str) -> None:
    upgrade(empty_database_url, to="0002")
    execute(
        empty_database_url,
        "INSERT INTO domain (authority, scheme, registered_at) VALUES ('a.test', 'http', now())",
        f"INSERT INTO domain_state (domain_id, coins, dormant) SELECT id, {COINS}, {COINS - sum(NETS)} FROM domain",
        *(
            f"INSERT INTO {table} SELECT id, '\\x{key}'::bytea, {figures} FROM domain"
            for key, net in zip(KEYS, NETS, strict=True)
            for table, figures in (
                ("frontier (domain_id, key, state, rank)", "'new', 5"),
                ("cash (domain_id, key, pool, net, history)", f"0, {net}, 42"),
            )
        ),
    )

    upgrade(empty_database_url)

    with psycopg.connect(empty_database_url) as connection:
        ranks = [row[0] for row in connection.execute("SELECT rank FROM frontier ORDER BY key")]
        histories = {row[0] for row in connection.execute("SELECT history FROM cash")}
        inbox = connection.execute("SELECT kind FROM inbox").fetchall()
    assert ranks == [Ordering().rank(net, depth=0, url_score=1.0) for net in NETS]
    assert histories == {42 - ENDOWMENT}
    assert inbox == [("reorder",)]
