"""The site's clock, by which pages age together, in place of deploys as a source of signals; what pages announce.

And what the silence of a source says of a page whose rate is not known.
"""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE domain_state
    ADD COLUMN site_clock_at timestamptz[] NOT NULL DEFAULT '{}',
    ADD COLUMN site_clock_ahead float8[] NOT NULL DEFAULT '{}',
    ADD COLUMN site_clock_changes float8[] NOT NULL DEFAULT '{}',
    ADD COLUMN site_clock_rates float8[] NOT NULL DEFAULT '{}',
    ADD COLUMN site_clock_scores float8[] NOT NULL DEFAULT '{}',
    ADD COLUMN site_clock_weighed float8 NOT NULL DEFAULT 0;
ALTER TABLE page ADD COLUMN announces float8 NOT NULL DEFAULT 0;
"""
HEARD_GAP = """
CREATE OR REPLACE FUNCTION heard_gap(
    unseen interval, signals bytea, recall float8[], noise float8[], silence float8, a float8, b float8)
RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN silence IS NULL THEN unseen ELSE (
        SELECT make_interval(secs => least(
            86400 * b * ((b + x.days) / x.silent_b * exp(least(30, coalesce(
                (SELECT max(get_byte(signals, n) * ln(1 + recall[n + 1] / noise[n + 1] * a / x.silent_b))
                   FROM generate_series(0, least(octet_length(signals), cardinality(recall)) - 1) n), 0) / a)) - 1),
            1e14))
          FROM (SELECT y.days, b + silence * y.days AS silent_b
                  FROM (SELECT greatest(date_part('epoch', unseen), 0) / 86400 AS days) y) x) END
$$;
"""
FUNCTIONS = """
CREATE FUNCTION look_importance(importance float8, is_new bool, announces float8, first_looks float8, novelty float8)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN is_new THEN importance * (novelty + 1) / (first_looks + 1) ELSE importance + announces END
$$;
COMMENT ON FUNCTION look_importance(float8, bool, float8, float8, float8) IS
    'How important a look at a page is: its importance, and that of the new pages which a change of it announces; of a
page never fetched by the share of what first looks at pages of its group found that was new. announces: column of page;
first_looks, novelty: columns of prior. One look of which all was new is added to these.';

CREATE FUNCTION site_clock_ahead(at timestamptz[], ahead float8[], since timestamptz)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN since IS NULL OR cardinality(at) = 0 OR since >= at[cardinality(at)] THEN 0
                WHEN since <= at[1] THEN ahead[cardinality(at)] - ahead[1]
                ELSE (SELECT ahead[cardinality(at)] - ahead[n] - (ahead[n + 1] - ahead[n])
                             * date_part('epoch', since - at[n]) / date_part('epoch', at[n + 1] - at[n])
                        FROM width_bucket(since, at) n) END
$$;
COMMENT ON FUNCTION site_clock_ahead(timestamptz[], float8[], timestamptz) IS
    'Days by which the clock of a site has gone ahead of the calendar since then; below 0 where it was slower.
at, ahead: columns site_clock_at and site_clock_ahead of domain_state.';

CREATE FUNCTION site_gap(now timestamptz, at timestamptz[], ahead float8[], since timestamptz)
RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN cardinality(at) = 0 THEN now - since
                ELSE greatest(make_interval(secs => date_part('epoch', now - since)
                                                    + 86400 * site_clock_ahead(at, ahead, since)), interval '0') END
$$;
COMMENT ON FUNCTION site_gap(timestamptz, timestamptz[], float8[], timestamptz) IS
    'The time since then by the clock of a site: what its pages have aged. Other arguments: see site_clock_ahead.';
"""
# A source of an earlier release, whose number others must not take: it says nothing any more.
OLD_SOURCE = """
UPDATE domain_source SET recall = 0, silence = 0, weighed_recall = 0, weighed_silence = 0, record = '{}'
 WHERE source = 'deploy';
"""
VIEW = """
CREATE OR REPLACE VIEW report_page AS
SELECT x.domain_id, x.domain, x.url, x.state,
       CASE WHEN x.discovery_order = 'mixed' THEN (1 - x.url_share) * x.popularity + x.url_share * x.url_score
            ELSE x.popularity END AS importance,
       x.popularity, x.url_score, x.favoured, x.freshness, x.changes_per_day, x.version, x.due_at, x.depth,
       x.first_seen_at, x.last_look_at, x.last_good_at, x.last_change_at, x.looks, x.changes, x.failures, x.status,
       x.reason, x.key, x.template, x.age, x.due_at - x.last_look_at AS next_interval
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
            WHEN f.state = 'known' AND p.version > 0 AND h.silence IS NULL  -- so it is inlined: a third of the time
            THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                                site_gap(greatest(now(), s.last_visit_at), s.site_clock_at, s.site_clock_ahead,
                                         p.last_good_at))
            WHEN f.state = 'known' AND p.version > 0
            THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                                heard_gap(site_gap(greatest(now(), s.last_visit_at), s.site_clock_at,
                                                   s.site_clock_ahead, p.last_good_at),
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
       greatest(now(), s.last_visit_at) - p.last_good_at AS age
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  JOIN (SELECT domain_id, sum(pages)::float8 AS pages FROM pool GROUP BY domain_id) n ON n.domain_id = d.id
  LEFT JOIN (SELECT domain_id, array_agg(recall ORDER BY no) AS recall, array_agg(noise ORDER BY no) AS noise,
                    max(silence) AS silence
               FROM domain_source GROUP BY domain_id) h ON h.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;
"""
GONE = """
DROP FUNCTION signals_and_deploys(bytea, int, timestamptz[], timestamptz);
ALTER TABLE domain_state DROP COLUMN deployed_at, DROP COLUMN deploy_evidence, DROP COLUMN deploy_since;
"""


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(HEARD_GAP)
    op.execute(FUNCTIONS)
    op.execute(OLD_SOURCE)
    op.execute(VIEW)
    op.execute(GONE)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
