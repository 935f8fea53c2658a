"""Depth first and breadth first as in the textbook, and the virtual page's share, the window, internal links."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

# Pages that wait get places by the clock at which they were found; from then on a link gives a page its place.
REPLACE = """
INSERT INTO inbox (domain_id, kind, arrived_at)
SELECT id, 'reorder', now() FROM domain WHERE discovery_order IN ('breadth', 'depth');
"""
DIALS = """
ALTER TABLE domain
    ADD internal_links DOUBLE PRECISION NOT NULL DEFAULT 1,
    ADD reserve_share DOUBLE PRECISION NOT NULL DEFAULT 0.15,
    ADD window_passes DOUBLE PRECISION NOT NULL DEFAULT 24,
    ADD CONSTRAINT domain_internal_links CHECK (internal_links >= 0),
    ADD CONSTRAINT domain_reserve_share CHECK (reserve_share BETWEEN 0 AND 1),
    ADD CONSTRAINT domain_window CHECK (window_passes > 0);
ALTER TABLE domain_state ADD window_passes DOUBLE PRECISION NOT NULL DEFAULT 24;
ALTER TABLE inbox DROP CONSTRAINT inbox_kind;
ALTER TABLE inbox
    ADD CONSTRAINT inbox_kind
    CHECK (kind IN ('seed', 'refresh', 'reorder', 'audit', 'reprice', 'share', 'window'));
"""
# The same arithmetic as crawler/core/opic/opic.py; a test holds them together.
FUNCTION = """
CREATE FUNCTION page_importance(
    history DOUBLE PRECISION, cash DOUBLE PRECISION, circulating DOUBLE PRECISION,
    clock_last DOUBLE PRECISION, clock_now DOUBLE PRECISION, pages DOUBLE PRECISION, passes DOUBLE PRECISION)
RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN cash IS NULL THEN NULL
        WHEN least(passes * circulating, clock_now) <= 0 THEN 1
        WHEN clock_now <= passes * circulating THEN greatest(pages * (history + cash) / clock_now, 0)
        WHEN clock_now - clock_last >= passes * circulating THEN pages * cash / (clock_now - clock_last)
        ELSE greatest(pages / (passes * circulating)
             * (cash
                + CASE WHEN abs(history) > 1e-3  -- coins; less is nothing, and could underflow
                       THEN history * (passes * circulating - greatest(clock_now - clock_last, 0))
                            / least(passes * circulating, clock_last)
                       ELSE 0 END), 0)
    END
$$;

COMMENT ON FUNCTION page_importance(float8, float8, float8, float8, float8, float8, float8) IS
    'Importance of a page relative to the mean page of its domain (mean 1): coins received within a window of its clock.
history, clock_last: columns history and clock of cash. cash: net + the dividend of its pool. circulating: coins -
dormant of domain_state. clock_now: column clock of domain_state. pages: how many take part, the sum over pool.
passes: column window_passes of domain_state.';
"""
VIEW = """
CREATE OR REPLACE VIEW report_page AS
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
       page_importance(c.history, c.net + q.dividend, s.coins - s.dormant, c.clock, s.clock, n.pages, s.window_passes)
           AS popularity,
       f.url_score,
       f.favoured,
       CASE WHEN f.state = 'known' AND p.version > 0 AND p.failures > 0 AND p.status IN (404, 410) THEN 0
            WHEN f.state = 'known' AND p.version > 0
            THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                                greatest(now(), s.last_visit_at) - p.last_good_at) END AS freshness,
       (g.a + p.evidence_a) / (g.b + p.evidence_b) AS changes_per_day,
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
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;
DROP FUNCTION page_importance(float8, float8, float8, float8, float8, float8);
"""


def upgrade() -> None:
    op.execute(DIALS)
    op.execute(FUNCTION)
    op.execute(VIEW)
    op.execute(REPLACE)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
