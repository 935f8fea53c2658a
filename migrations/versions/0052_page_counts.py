"""Define once what a page counts as, and count the pages of a domain in one view that all reports read.

A sitemap or a feed that was only looked for at its usual place is no page; what never was there is a dead link and not
gone; content that is withheld as a soft error's is counted.
"""

from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None

COUNTED_AS = """
CREATE FUNCTION page_counted_as(state text, version int, list_kind text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE WHEN list_kind = '' AND version = 0 THEN 'unread_list'
            WHEN state = 'gone' AND version = 0 THEN 'dead_link'
            ELSE state END $$;
COMMENT ON FUNCTION page_counted_as(text, int, text) IS
    'What a page counts as in all reports: its state, but unread_list for the address of a sitemap or a feed that was
never read, and dead_link for a page that is not there and never was.';
ALTER TABLE domain_figures
    ADD COLUMN dead_links BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN withheld BIGINT NOT NULL DEFAULT 0;
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
"""
# Without freshness, which takes a hundred times as long.
COUNTS = """
CREATE VIEW domain_counts AS
SELECT g.domain_id, g.new AS pages_new, g.known AS pages_known, g.gone AS pages_gone, g.dead_links,
       g.moved AS pages_moved,
       g.refused AS pages_refused, g.withheld AS pages_withheld, g.counted_at
  FROM domain_figures g JOIN domain_counted_live l USING (domain_id)
 WHERE NOT l.is_live
 UNION ALL
SELECT s.domain_id, r.*, greatest(now(), s.last_visit_at)
  FROM domain_state s
  JOIN domain_counted_live l USING (domain_id)
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE c.counted_as = 'new'),
              count(*) FILTER (WHERE c.counted_as = 'known'),
              count(*) FILTER (WHERE c.counted_as = 'gone'),
              count(*) FILTER (WHERE c.counted_as = 'dead_link'),
              count(*) FILTER (WHERE c.counted_as = 'moved'),
              count(*) FILTER (WHERE c.counted_as = 'refused'),
              count(*) FILTER (WHERE c.withheld_since IS NOT NULL)
         FROM (SELECT page_counted_as(f.state, p.version, u.kind) AS counted_as, p.withheld_since
                 FROM frontier f
                 JOIN page p ON p.domain_id = s.domain_id AND p.key = f.key
                 LEFT JOIN url_list u ON u.domain_id = s.domain_id AND u.key = f.key
                WHERE f.domain_id = s.domain_id) c) r
 WHERE l.is_live;
COMMENT ON VIEW domain_counts IS
    'How many pages of each kind a domain has; the one source of these counts for every report.';
CREATE OR REPLACE VIEW report_domain AS
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
       r.freshness,
       r.freshness_plain,
       r.oldest_look_at,
       s.last_visit_at,
       s.wake_at AS next_due_at,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_at END AS hold_until,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_reason END AS hold_reason,
       d.budget_per_day,
       CASE WHEN s.budget_day = (greatest(now(), s.last_visit_at) AT TIME ZONE 'UTC')::date
            THEN s.spent_requests ELSE 0 END AS spent_today,
       CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder,
       n.counted_at,
       coalesce(n.dead_links, 0) AS dead_links,
       coalesce(n.pages_withheld, 0) AS pages_withheld
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  LEFT JOIN domain_plan l ON l.domain_id = d.id
  LEFT JOIN domain_counts n ON n.domain_id = d.id
  LEFT JOIN (
       SELECT g.domain_id, g.freshness, g.freshness_plain, g.oldest_look_at
         FROM domain_figures g JOIN domain_counted_live l USING (domain_id)
        WHERE NOT l.is_live
        UNION ALL
       SELECT l.domain_id, r.*
         FROM domain_counted_live l
        CROSS JOIN LATERAL (
              SELECT sum(r.importance * r.freshness)
                         / nullif(sum(r.importance) FILTER (WHERE r.freshness IS NOT NULL), 0),
                     avg(r.freshness),
                     min(r.last_look_at) FILTER (WHERE r.freshness IS NOT NULL)
                FROM report_page r WHERE r.domain_id = l.domain_id) r
        WHERE l.is_live) r ON r.domain_id = d.id;
"""
MEANINGS = {
    "report_page": {
        "counted_as": "its state, but unread_list for a list never read, and dead_link for what never was there",
        "withheld_since": "since when other content is withheld that may stand in place of the page; two days at most",
    },
    "report_domain": {
        "pages_new": "heard of and never fetched",
        "pages_gone": "not there any more; looked at now and then",
        "dead_links": "addresses that lead to nothing, and never led to a page",
        "pages_withheld": "pages whose new content is withheld, as it may stand in place of them; two days at most",
    },
    "domain_counts": {
        "domain_id": "the domain, by number",
        "pages_new": "heard of and never fetched",
        "pages_known": "fetched, and there",
        "pages_gone": "not there any more",
        "dead_links": "addresses that lead to nothing, and never led to a page",
        "pages_moved": "that redirect for good",
        "pages_refused": "that may not be fetched",
        "pages_withheld": "whose new content is withheld",
        "counted_at": "when that was counted",
    },
}


def upgrade() -> None:
    op.execute(COUNTED_AS)
    op.execute(PAGES)
    op.execute(COUNTS)
    for view, columns in MEANINGS.items():
        for column, meaning in columns.items():
            op.execute(f"COMMENT ON COLUMN {view}.{column} IS '{meaning}'")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
