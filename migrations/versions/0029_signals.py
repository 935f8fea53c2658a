"""Signals about pages that were not fetched: counted by page, their sources measured by domain."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

TABLES = """
ALTER TABLE page
    ADD COLUMN signals bytea NOT NULL DEFAULT '',
    ADD COLUMN signalled_at timestamptz[] NOT NULL DEFAULT '{}';
CREATE TABLE domain_source (
    domain_id bigint NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    no smallint NOT NULL,
    source text NOT NULL,
    signals bigint NOT NULL DEFAULT 0,
    measured_at timestamptz NOT NULL,
    recall float8 NOT NULL,
    noise float8 NOT NULL,
    silence float8 NOT NULL,
    weighed_recall float8 NOT NULL,
    weighed_noise float8 NOT NULL,
    weighed_silence float8 NOT NULL,
    record jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (domain_id, no),
    CONSTRAINT domain_source_name UNIQUE (domain_id, source),
    CONSTRAINT domain_source_bounds
        CHECK (no >= 0 AND signals >= 0 AND recall BETWEEN 0 AND 1 AND noise > 0 AND silence BETWEEN 0 AND 1)
);
ALTER TABLE inbox DROP CONSTRAINT inbox_kind;
ALTER TABLE inbox
    ADD CONSTRAINT inbox_kind
    CHECK (kind IN ('seed', 'refresh', 'reorder', 'audit', 'reprice', 'share', 'window', 'signal'));
"""
# The same arithmetic as crawler/core/freshness/signals.py; a test holds them together.
FUNCTIONS = """
CREATE FUNCTION signals_with(signals bytea, no int) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT set_byte(x.wide, no, least(get_byte(x.wide, no) + 1, 255))
      FROM (SELECT signals || decode(repeat('00', greatest(no + 1 - octet_length(signals), 0)), 'hex') AS wide) x
$$;
COMMENT ON FUNCTION signals_with(bytea, int) IS
    'Column signals of page with one more of the source of that number; a byte counts to 255.';

CREATE FUNCTION heard_gap(
    unseen interval, signals bytea, recall float8[], noise float8[], silence float8, a float8, b float8)
RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN silence IS NULL THEN unseen ELSE
        unseen * (1 - silence) + make_interval(secs => least(
            86400 * b * (exp(least(30, coalesce(
                (SELECT max(get_byte(signals, n) * ln(1 + recall[n + 1] / noise[n + 1] * a / b))
                   FROM generate_series(0, least(octet_length(signals), cardinality(recall)) - 1) n), 0) / a)) - 1),
            1e14)) END
$$;
COMMENT ON FUNCTION heard_gap(interval, bytea, float8[], float8[], float8, float8, float8) IS
    'The time without any source of signals after which a page would be as likely to have changed.
unseen: since its last good look. signals: column of page. recall, noise: columns of domain_source by no. silence: the
greatest of its domain, null without a source. a, b: of the belief about the page, b in days.';
"""
VIEWS = """
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
                                heard_gap(greatest(now(), s.last_visit_at) - p.last_good_at, p.signals, h.recall,
                                          h.noise, h.silence, g.a + p.evidence_a, g.b + p.evidence_b)) END AS freshness,
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
                    max(silence) AS silence FROM domain_source GROUP BY domain_id) h ON h.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;

CREATE VIEW report_source AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       o.source,
       o.signals,
       o.recall,
       (o.record->>'true')::float8 / nullif((o.record->>'true')::float8 + (o.record->>'false')::float8, 0)
           AS precision,
       o.noise AS false_per_page_day,
       o.silence,
       o.measured_at
  FROM domain_source o
  JOIN domain d ON d.id = o.domain_id;
COMMENT ON VIEW report_source IS
    'Sources of change signals of each domain, and what looks have shown their word to be worth.';
COMMENT ON COLUMN report_source.domain_id IS 'column id of domain';
COMMENT ON COLUMN report_source.domain IS 'host, with its port if that is not the usual one';
COMMENT ON COLUMN report_source.source IS 'sitemap, feed, hub, deploy, push, or the name that a hint gave';
COMMENT ON COLUMN report_source.measured_at IS 'when its word was last measured, UTC';
COMMENT ON COLUMN report_source.signals IS 'taken in so far';
COMMENT ON COLUMN report_source.recall IS
    'the chance that it tells a change, as it counts today: 0 until looks have shown that it tells something';
COMMENT ON COLUMN report_source.precision IS 'share of its signals that were true, among those looked into of late';
COMMENT ON COLUMN report_source.false_per_page_day IS 'signals without a change, per page and day';
COMMENT ON COLUMN report_source.silence IS 'by so much slower a page ages about which it says nothing, 0 to 1';
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(FUNCTIONS)
    op.execute(VIEWS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
