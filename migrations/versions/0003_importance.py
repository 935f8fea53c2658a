"""Orders of discovery, favoured pages, links to other domains, and importance across domains."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE domain
    ADD discovery_order TEXT NOT NULL DEFAULT 'opic',
    ADD url_share DOUBLE PRECISION NOT NULL DEFAULT 0.3,
    ADD favour TEXT[] NOT NULL DEFAULT '{}',
    ADD favour_by DOUBLE PRECISION NOT NULL DEFAULT 4,
    ADD discovery_weight DOUBLE PRECISION NOT NULL DEFAULT 1,
    ADD refresh_weight DOUBLE PRECISION NOT NULL DEFAULT 1,
    ADD external_links DOUBLE PRECISION NOT NULL DEFAULT 0,
    ADD CONSTRAINT domain_order CHECK (discovery_order IN ('opic', 'breadth', 'depth', 'mixed')),
    ADD CONSTRAINT domain_url_share CHECK (url_share BETWEEN 0 AND 1),
    ADD CONSTRAINT domain_dial CHECK (favour_by > 0 AND discovery_weight >= 0 AND refresh_weight >= 0),
    ADD CONSTRAINT domain_external_links CHECK (external_links >= 0);

ALTER TABLE frontier
    ALTER rank TYPE INTEGER,
    ADD favoured BOOLEAN NOT NULL DEFAULT false,
    ADD url_score DOUBLE PRECISION NOT NULL DEFAULT 1;

DROP INDEX frontier_discovery;
CREATE INDEX frontier_discovery ON frontier (domain_id, favoured, rank DESC, key) WHERE state = 'new';

ALTER TABLE page_links
    ADD elsewhere TEXT[] NOT NULL DEFAULT '{}',
    ADD elsewhere_links INTEGER[] NOT NULL DEFAULT '{}',
    ADD CONSTRAINT page_links_elsewhere CHECK (cardinality(elsewhere) = cardinality(elsewhere_links));

CREATE TABLE domain_plan (
    domain_id BIGINT NOT NULL PRIMARY KEY REFERENCES domain (id) ON DELETE CASCADE,
    importance DOUBLE PRECISION NOT NULL,
    planned_at TIMESTAMPTZ NOT NULL
);

ALTER TABLE inbox DROP CONSTRAINT inbox_kind,
    ADD CONSTRAINT inbox_kind CHECK (kind IN ('seed', 'refresh', 'reorder'));
"""
# What was recorded so far, in the new terms: ranks by net, and endowments as a debt of every history.
FILL = """
UPDATE cash SET history = history - 100000000;
UPDATE frontier f SET rank = greatest(least(floor(c.net / 12500000.0), 1048576000), -1048576000)
  FROM cash c WHERE c.domain_id = f.domain_id AND c.key = f.key AND f.state = 'new';
INSERT INTO inbox (domain_id, kind, arrived_at) SELECT id, 'reorder', now() FROM domain;
"""

# The same arithmetic as crawler/core/opic/opic.py; a test holds them together.
FUNCTION = """
CREATE OR REPLACE FUNCTION page_importance(
    history DOUBLE PRECISION, cash DOUBLE PRECISION, circulating DOUBLE PRECISION,
    clock_last DOUBLE PRECISION, clock_now DOUBLE PRECISION, pages DOUBLE PRECISION)
RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN cash IS NULL THEN NULL
        WHEN least(24 * circulating, clock_now) <= 0 THEN 1
        WHEN clock_now <= 24 * circulating THEN greatest(pages * (history + cash) / clock_now, 0)
        WHEN clock_now - clock_last >= 24 * circulating THEN pages * cash / (clock_now - clock_last)
        ELSE greatest(pages / (24 * circulating)
             * (cash
                + CASE WHEN abs(history) > 1e-3  -- coins; less is nothing, and could underflow
                       THEN history * (24 * circulating - greatest(clock_now - clock_last, 0))
                            / least(24 * circulating, clock_last)
                       ELSE 0 END), 0)
    END
$$;

COMMENT ON FUNCTION page_importance IS
    'Importance of a page relative to the mean page of its domain (mean 1): coins received within a window of 24 passes.
history, clock_last: columns history and clock of cash. cash: net + the dividend of its pool. circulating: coins -
dormant of domain_state. clock_now: column clock of domain_state. pages: how many take part, the sum over pool.';
"""

REPORT_PAGE = """
CREATE VIEW report_page AS
SELECT x.domain_id, x.domain, x.url, x.state,
       CASE WHEN x.discovery_order = 'mixed' THEN (1 - x.url_share) * x.popularity + x.url_share * x.url_score
            ELSE x.popularity END AS importance,
       x.popularity, x.url_score, x.favoured, x.freshness, x.changes_per_day, x.version, x.due_at, x.depth,
       x.first_seen_at, x.last_look_at, x.last_good_at, x.last_change_at, x.looks, x.changes, x.failures, x.status,
       x.reason
  FROM (
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.discovery_order,
       d.url_share,
       p.url,
       f.state,
       page_importance(c.history, c.net + q.dividend, s.coins - s.dormant, c.clock, s.clock, n.pages) AS popularity,
       f.url_score,
       f.favoured,
       CASE WHEN f.state = 'known' AND p.version > 0
            THEN page_freshness(p.belief_a, p.belief_b, greatest(now(), s.last_visit_at) - p.last_good_at) END
           AS freshness,
       p.belief_a / p.belief_b AS changes_per_day,
       p.version,
       f.due_at,
       f.depth,
       p.first_seen_at,
       p.last_look_at,
       p.last_good_at,
       p.last_change_at,
       p.visits AS looks,
       p.changes,
       p.failures,
       p.status,
       p.reason
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  JOIN (SELECT domain_id, sum(pages)::float8 AS pages FROM pool GROUP BY domain_id) n ON n.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x
"""
REPORT_DOMAIN = """
CREATE VIEW report_domain AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.state,
       coalesce(l.importance, d.weight) AS importance,
       d.registered_at,
       coalesce(n.pages_new, 0) AS pages_new,
       coalesce(n.pages_known, 0) AS pages_known,
       coalesce(n.pages_gone, 0) AS pages_gone,
       coalesce(n.pages_moved, 0) AS pages_moved,
       coalesce(n.pages_refused, 0) AS pages_refused,
       n.freshness,
       n.freshness_plain,
       n.oldest_look_at,
       s.last_visit_at,
       s.wake_at AS next_due_at,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_at END AS left_alone_until,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_reason END AS left_alone_because,
       d.budget_per_day,
       CASE WHEN s.budget_day = (greatest(now(), s.last_visit_at) AT TIME ZONE 'UTC')::date
            THEN s.spent_requests ELSE 0 END AS spent_today,
       CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  LEFT JOIN domain_plan l ON l.domain_id = d.id
  LEFT JOIN (SELECT domain_id,
                    count(*) FILTER (WHERE state = 'new') AS pages_new,
                    count(*) FILTER (WHERE state = 'known') AS pages_known,
                    count(*) FILTER (WHERE state = 'gone') AS pages_gone,
                    count(*) FILTER (WHERE state = 'moved') AS pages_moved,
                    count(*) FILTER (WHERE state = 'refused') AS pages_refused,
                    sum(importance * freshness) / nullif(sum(importance) FILTER (WHERE freshness IS NOT NULL), 0)
                        AS freshness,
                    avg(freshness) AS freshness_plain,
                    min(last_look_at) FILTER (WHERE freshness IS NOT NULL) AS oldest_look_at
               FROM report_page GROUP BY domain_id) n ON n.domain_id = d.id
"""
NEW_MEANINGS = {
    "report_domain": {"importance": "across domains, mean 1, times its user's weight; the weight alone until planned"},
    "report_page": {
        "importance": "relative to the mean page of the domain (mean 1); null for a page outside its economy",
        "popularity": "the part of importance that links give: all of it, unless the domain's order is mixed",
        "url_score": "the part that the URL gives: 1 two folders down, halved by each further one and by a query",
        "favoured": "whether a pattern of its user favours it",
    },
}


def upgrade() -> None:
    meanings = kept_meanings()
    op.execute(COLUMNS)
    op.execute(FILL)
    op.execute(FUNCTION)
    op.execute("DROP VIEW report_domain, report_page")
    for view, statement in (("report_page", REPORT_PAGE), ("report_domain", REPORT_DOMAIN)):
        op.execute(statement)
        about, columns = meanings[view]
        op.execute(f"COMMENT ON VIEW {view} IS {quoted(about)}")
        for column, meaning in (columns | NEW_MEANINGS[view]).items():
            op.execute(f"COMMENT ON COLUMN {view}.{column} IS {quoted(meaning)}")


def kept_meanings() -> dict[str, tuple[str, dict[str, str]]]:
    """What the views and their columns are said to mean so far."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for view in NEW_MEANINGS:
        rows = op.get_bind().exec_driver_sql(
            f"""SELECT a.attname, col_description(a.attrelid, a.attnum), obj_description(a.attrelid)
                  FROM pg_attribute a WHERE a.attrelid = '{view}'::regclass AND a.attnum > 0"""  # noqa: S608  our names
        )
        described = [tuple(row) for row in rows]
        found[view] = described[0][2], {name: meaning for name, meaning, _ in described}
    return found


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
