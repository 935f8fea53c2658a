"""What a migration does with the rows that it finds."""

import json

import psycopg

from crawler.core.opic import COINS, ENDOWMENT, Ordering
from crawler.store.database import upgrade
from tests.databases import execute

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
    assert ranks == [Ordering().rank(net, url_score=1.0) for net in NETS]
    assert histories == {42 - ENDOWMENT}
    assert inbox == [("reorder",)]


OLD_WORDS = (  # what a database of revision 0015 holds of the words that 0016 replaces
    "INSERT INTO domain (authority, scheme, registered_at) VALUES ('a.test', 'http', now())",
    f"INSERT INTO domain_state (domain_id, coins, dormant) SELECT id, {COINS}, {COINS} FROM domain",
    "INSERT INTO prior (domain_id, no, template, a, b) SELECT id, 0, '*', 0.5, 10 FROM domain",
    *(
        f"""INSERT INTO page (domain_id, key, url, first_seen_at, reason, walled)
            SELECT id, decode(md5('{reason}'), 'hex'), 'http://a.test/{reason}', now(), '{reason}', 3 FROM domain"""
        for reason in ("many_alike", "cut_off", "moves_with_others", "moves_onto_a_page", "http_404", "")
    ),
    *(
        f"""INSERT INTO visit (domain_id, key, at, answer, reason, change, rung, conditional, requests)
            SELECT id, decode(md5('{rung}'), 'hex'), now(), 'fetched', '{reason}', 'same', '{rung}', false, 1
              FROM domain"""
        for rung, reason in (("frame", ""), ("pieces", ""), ("status", "cut_off"), ("bytes", "soft_404"))
    ),
    """INSERT INTO event (domain_id, number, at, key, url, change, parts, pieces, pages)
       SELECT id, 1, now(), decode(md5('/'), 'hex'), 'http://a.test/', 'frame', 'text', '[["text", null, "New"]]', 3
         FROM domain""",
    "INSERT INTO feed (position, domain_id, number, appended_at) SELECT 1, id, 1, now() FROM domain",
    "INSERT INTO domain_walls (domain_id, walls) SELECT id, '\\x00'::bytea FROM domain",
    "INSERT INTO domain_plan (domain_id, importance, planned_at, trim) SELECT id, 1, now(), 1.1 FROM domain",
    """INSERT INTO page_links (domain_id, key, targets, elsewhere, elsewhere_links)
       SELECT id, decode(md5('/'), 'hex'), '', '{b.test}', '{2}' FROM domain""",
    """INSERT INTO domain_trust (domain_id, prior_no, records)
       SELECT id, no, CASE no WHEN 0 THEN '{"etag": {"told": 4, "lied": 3, "same": 2, "flapped": 1}}'::jsonb
                              ELSE '{}' END
         FROM domain CROSS JOIN generate_series(0, 1) no""",
)


def test_old_words_in_pages_visits_and_events_become_plain_ones(empty_database_url: str) -> None:
    upgrade(empty_database_url, to="0015")
    execute(empty_database_url, *OLD_WORDS)

    upgrade(empty_database_url)

    with psycopg.connect(empty_database_url) as connection:

        def rows(statement: str) -> list[tuple[object, ...]]:
            return sorted(connection.execute(statement.encode()).fetchall())

        reasons = [(reason, 3) for reason in ("", "bulk_redirect", "http_404", "redirect_to_existing", "shared_text")]
        assert rows("SELECT reason, soft_errors FROM page") == [*reasons, ("truncated", 3)]
        assert rows("SELECT rung, reason FROM visit") == [
            ("blocks", ""),
            ("boilerplate", ""),
            ("bytes", "soft_404"),
            ("status", "truncated"),
        ]
        assert rows("SELECT change, parts, pages FROM report_change") == [("boilerplate", "text", 3)]
        assert rows("SELECT blocks FROM event") == [([["text", None, "New"]],)]
        assert rows("SELECT memory FROM domain_soft_errors") == [(b"\0",)]
        assert rows("SELECT price_correction FROM domain_plan") == [(1.1,)]
        assert rows("SELECT external_domains, external_link_counts FROM page_links") == [(["b.test"], [2])]
        assert rows("SELECT prior_no, stats = '{}' FROM domain_trust") == [(0, False), (1, True)]
        assert rows("SELECT validator, rating, changes_seen, missed, unchanged, flapped FROM report_trust") == [
            ("etag", "lies", 4.0, 3.0, 2.0, 1.0)
        ]
        assert rows("SELECT hold_until, hold_reason FROM report_domain") == [(None, None)]


RECORD_OF_OLD = '{"true": 8.5, "false": 1, "expected": 11, "arrived": 3, "arrived_page_days": 40}'
SOURCE = """
    INSERT INTO domain_source (domain_id, no, source, measured_at, recall, noise, silence, weighed_recall,
                               weighed_noise, weighed_silence, record)
    SELECT id, 0, 'sitemap', now(), 0.5, 0.01, 0.5, 0.5, 0.01, 0.5, %s::jsonb FROM domain
"""


def test_a_source_keeps_what_it_has_earned_when_records_count_by_page(empty_database_url: str) -> None:
    upgrade(empty_database_url, to="0037")
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("INSERT INTO domain (authority, scheme, registered_at) VALUES ('a.test', 'http', now())")
        connection.execute(SOURCE, (RECORD_OF_OLD,))

    upgrade(empty_database_url)

    with psycopg.connect(empty_database_url) as connection:
        found = connection.execute("SELECT record FROM domain_source").fetchone()
    assert found is not None
    assert found[0] == json.loads(RECORD_OF_OLD) | {"told": 8.5, "usual": 3, "usual_page_days": 40}


def test_every_column_of_the_views_is_still_described_after_the_words_changed(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        undescribed = connection.execute(
            """SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                WHERE c.relkind = 'v' AND c.relname LIKE 'report%' AND a.attnum > 0
                  AND col_description(a.attrelid, a.attnum) IS NULL"""
        ).fetchall()

    assert undescribed == []


def test_pages_that_were_refused_before_are_told_once_to_whoever_is_told_of_all_news(empty_database_url: str) -> None:
    upgrade(empty_database_url, to="0046")
    news = "{back,boilerplate,changed,gone,held_back,let_go,moved}"
    execute(
        empty_database_url,
        "INSERT INTO domain (authority, scheme, registered_at) VALUES ('a.test', 'http', now())",
        f"INSERT INTO domain_state (domain_id, coins, dormant, next_event) SELECT id, {COINS}, {COINS}, 4 FROM domain",
        "INSERT INTO prior (domain_id, no, template, a, b) SELECT id, 0, '*', 0.5, 10 FROM domain",
        *(
            statement
            for key, state, version in zip(KEYS, ("refused", "refused", "known"), (2, 0, 1), strict=True)
            for statement in (
                f"""INSERT INTO page (domain_id, key, url, first_seen_at, last_look_at, version)
                    SELECT id, '\\x{key}', 'http://a.test/{key}', '2026-01-01', '2026-02-01', {version} FROM domain""",
                f"""INSERT INTO frontier (domain_id, key, state, rank, due_at)
                    SELECT id, '\\x{key}', '{state}', 5, now() FROM domain""",
            )
        ),
        f"""INSERT INTO event (domain_id, number, at, key, url, change, version)
            SELECT id, 3, '2026-01-01', '\\x{KEYS[0]}', 'http://a.test/', 'changed', 2 FROM domain""",
        f"""INSERT INTO subscription (target, made_at, position, condition, kinds)
            VALUES ('env:A', now(), 0, '', '{news}'), ('env:B', now(), 0, '', '{{gone,back}}'),
                   ('env:C', now(), 0, 'goes', '{news}')""",
    )

    upgrade(empty_database_url)

    with psycopg.connect(empty_database_url) as connection:
        told = connection.execute("SELECT number, encode(key, 'hex'), version FROM event WHERE change = 'refused'")
        assert told.fetchall() == [(4, KEYS[0], 2)]
        assert connection.execute("SELECT next_event FROM domain_state").fetchall() == [(5,)]
        found = connection.execute("SELECT 'refused' = ANY(kinds) FROM subscription ORDER BY id").fetchall()
    assert found == [(True,), (False,), (False,)]
