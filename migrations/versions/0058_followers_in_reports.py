"""A page that follows another one's schedule has no freshness of its own in reports: one text counts once.

And a page of which sources have told much is not too old for an interval.
"""

from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

# Postgres counts the microseconds of an interval in 64 bits: 1e14 seconds, the most before, were too many.
HEARD_GAP = """
CREATE OR REPLACE FUNCTION heard_gap(
    unseen interval, signals bytea, recall float8[], noise float8[], silence float8, a float8, b float8)
RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN silence IS NULL THEN unseen ELSE (
        SELECT make_interval(secs => least(
            86400 * b * ((b + x.days) / x.silent_b * exp(least(30, coalesce(
                (SELECT max(get_byte(signals, n) * ln(1 + recall[n + 1] / noise[n + 1] * a / x.silent_b))
                   FROM generate_series(0, least(octet_length(signals), cardinality(recall)) - 1) n), 0) / a)) - 1),
            1e12))
          FROM (SELECT y.days, b + silence * y.days AS silent_b
                  FROM (SELECT greatest(date_part('epoch', unseen), 0) / 86400 AS days) y) x) END
$$;
"""
PAGES = """
CREATE OR REPLACE VIEW report_page AS
SELECT x.domain_id, x.domain, x.url, x.state,
       CASE WHEN x.discovery_order = 'mixed' THEN (1 - x.url_share) * x.popularity + x.url_share * x.url_score
            ELSE x.popularity END AS importance,
       x.popularity, x.url_score, x.favoured, x.freshness, x.changes_per_day, x.version, x.due_at, x.depth,
       x.first_seen_at, x.last_look_at, x.last_good_at, x.last_change_at, x.looks, x.changes, x.failures, x.status,
       x.reason, x.key, x.template, x.age, x.due_at - x.last_look_at AS next_interval,
       x.counted_as, x.withheld_since
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
       CASE WHEN p.leader IS NOT NULL THEN NULL
            WHEN f.state = 'known' AND p.version > 0 AND p.failures > 0 AND p.status IN (404, 410) THEN 0
            WHEN f.state = 'known' AND p.version > 0 AND h.silence IS NULL  -- so it is inlined: a third of the time
            THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                                activity_gap(greatest(now(), s.last_visit_at), s.activity_at, s.activity_ahead,
                                         p.last_good_at))
            WHEN f.state = 'known' AND p.version > 0
            THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                                heard_gap(activity_gap(greatest(now(), s.last_visit_at), s.activity_at,
                                                   s.activity_ahead, p.last_good_at),
                                          p.signals,
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
       p.reason,
       p.key,
       g.template,
       greatest(now(), s.last_visit_at) - p.last_good_at AS age,
       page_counted_as(f.state, p.version, u.kind) AS counted_as,
       p.withheld_since
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  JOIN (SELECT domain_id, sum(pages)::float8 AS pages FROM pool GROUP BY domain_id) n ON n.domain_id = d.id
  LEFT JOIN (SELECT domain_id, array_agg(recall ORDER BY no) AS recall, array_agg(noise ORDER BY no) AS noise,
                    max(silence) AS silence
               FROM domain_source GROUP BY domain_id) h ON h.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN url_list u ON u.domain_id = d.id AND u.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;
COMMENT ON COLUMN report_page.freshness IS
    'chance that the page is as it was when last seen; null where none was fetched, and for one that follows another
page''s schedule: their text counts once';
"""


def upgrade() -> None:
    op.execute(HEARD_GAP)
    op.execute(PAGES)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
