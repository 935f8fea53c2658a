"""Deploys: instants at which many pages of a site changed together, as signals about pages not looked at since."""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE domain_state
    ADD COLUMN deployed_at timestamptz[] NOT NULL DEFAULT '{}',
    ADD COLUMN deploy_evidence float8 NOT NULL DEFAULT 0,
    ADD COLUMN deploy_since timestamptz;
"""
FUNCTION = """
CREATE FUNCTION signals_and_deploys(signals bytea, no int, deployed_at timestamptz[], since timestamptz)
RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN no IS NULL OR since IS NULL OR since >= coalesce(deployed_at[cardinality(deployed_at)], since)
                THEN signals
                ELSE (SELECT set_byte(x.wide, no, least(get_byte(x.wide, no) + (SELECT count(*)::int
                                                          FROM unnest(deployed_at) d WHERE d > since), 255))
                        FROM (SELECT signals || decode(repeat('00', greatest(no + 1 - octet_length(signals), 0)),
                                                       'hex') AS wide) x) END
$$;
COMMENT ON FUNCTION signals_and_deploys(bytea, int, timestamptz[], timestamptz) IS
    'Column signals of page, and the deploys since its last good look as signals of the source of that number.
no: of the source of deploys in domain_source, null without one. deployed_at: column of domain_state.';
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
                                heard_gap(greatest(now(), s.last_visit_at) - p.last_good_at,
                                          signals_and_deploys(p.signals, h.deploy, s.deployed_at, p.last_good_at),
                                          h.recall, h.noise, h.silence, g.a + p.evidence_a, g.b + p.evidence_b))
            END AS freshness,
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
  LEFT JOIN (SELECT domain_id, array_agg(recall ORDER BY no) AS recall, array_agg(noise ORDER BY no) AS noise,
                    max(silence) AS silence, max(no) FILTER (WHERE source = 'deploy')::int AS deploy
               FROM domain_source GROUP BY domain_id) h ON h.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;
"""


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(FUNCTION)
    op.execute(VIEW)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
