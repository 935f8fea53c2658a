CREATE VIEW report_page AS
SELECT x.domain_id, x.domain, x.url, x.state,
       CASE WHEN x.discovery_order = 'mixed' THEN (1 - x.url_weight) * x.popularity + x.url_weight * x.url_score
            ELSE x.popularity END AS importance,
       x.popularity, x.url_score, x.boosted, x.freshness, x.changes_per_day, x.version, x.due_at, x.depth,
       x.first_seen_at, x.last_visit_at, x.last_good_at, x.last_change_at, x.visits, x.changes, x.failures, x.status,
       x.reason, x.key, x.template, x.age, x.due_at - x.last_visit_at AS next_interval,
       x.category, x.withheld_since
  FROM (
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.discovery_order,
       d.url_weight,
       p.url,
       f.state,
       page_importance(c.history, c.net + q.dividend, s.total_cash - s.dormant, c.clock, s.clock, n.pages, s.window_passes)
           AS popularity,
       f.url_score,
       f.boosted,
       CASE WHEN p.canonical IS NOT NULL THEN NULL
            WHEN f.state = 'fetched' AND p.version > 0 AND p.failures > 0 AND p.status IN (404, 410) THEN 0
            WHEN f.state = 'fetched' AND p.version > 0 AND h.effective_recall IS NULL  -- so it is inlined: a third of the time
            THEN page_freshness(g.a + p.rate_a, g.b + p.rate_b,
                                activity_gap(greatest(now(), s.last_visit_at), s.activity_at, s.activity_ahead,
                                         p.last_good_at))
            WHEN f.state = 'fetched' AND p.version > 0
            THEN page_freshness(g.a + p.rate_a, g.b + p.rate_b,
                                signal_gap(activity_gap(greatest(now(), s.last_visit_at), s.activity_at,
                                                   s.activity_ahead, p.last_good_at),
                                          p.signals,
                                          h.recall, h.noise, h.effective_recall, g.a + p.rate_a, g.b + p.rate_b))
            END AS freshness,
       (g.a + p.rate_a) / (g.b + p.rate_b) AS changes_per_day,
       p.version,
       f.due_at,
       f.depth,
       p.first_seen_at,
       p.last_visit_at,
       p.last_good_at,
       p.last_change_at,
       p.visits,
       p.changes,
       p.failures,
       p.status,
       p.reason,
       p.key,
       g.template,
       greatest(now(), s.last_visit_at) - p.last_good_at AS age,
       page_category(f.state, p.version, u.kind) AS category,
       p.withheld_since
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  JOIN (SELECT domain_id, sum(pages)::float8 AS pages FROM pool GROUP BY domain_id) n ON n.domain_id = d.id
  LEFT JOIN (SELECT domain_id, array_agg(recall ORDER BY no) AS recall, array_agg(noise ORDER BY no) AS noise,
                    max(effective_recall) AS effective_recall
               FROM domain_source GROUP BY domain_id) h ON h.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN url_list u ON u.domain_id = d.id AND u.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;
COMMENT ON VIEW report_page IS
    'Every page of every domain. Say domain_id = ... rather than domain = ..., so that one partition is read.';
COMMENT ON COLUMN report_page.domain_id IS 'the domain, by number';
COMMENT ON COLUMN report_page.domain IS 'the domain, by name';
COMMENT ON COLUMN report_page.url IS 'the page''s one spelling';
COMMENT ON COLUMN report_page.state IS 'new, known, gone, moved or refused';
COMMENT ON COLUMN report_page.importance IS
    'relative to the mean page of the domain (mean 1); null for a page outside its economy';
COMMENT ON COLUMN report_page.popularity IS
    'the part of importance that links give: all of it, unless the domain''s order is mixed';
COMMENT ON COLUMN report_page.url_score IS
    'the part that the URL gives: 1 two folders down, halved by each further one and by a query';
COMMENT ON COLUMN report_page.boosted IS 'whether a pattern of its user favours it';
COMMENT ON COLUMN report_page.freshness IS
    'chance that the page is as it was when last seen; null where none was fetched, and for one that follows another
page''s schedule: their text counts once';
COMMENT ON COLUMN report_page.changes_per_day IS 'what is believed about how often it changes: the mean of the belief';
COMMENT ON COLUMN report_page.version IS 'of its newest snapshot; 0 if there never was one';
COMMENT ON COLUMN report_page.due_at IS
    'when it is looked at next; null for a new page, which waits in the order of its cash';
COMMENT ON COLUMN report_page.depth IS 'links from the nearest seed';
COMMENT ON COLUMN report_page.first_seen_at IS 'when a link or a seed told of it first';
COMMENT ON COLUMN report_page.last_visit_at IS 'the newest look, whatever came of it';
COMMENT ON COLUMN report_page.last_good_at IS 'the newest look that told what the page is';
COMMENT ON COLUMN report_page.last_change_at IS 'the newest look that found it changed';
COMMENT ON COLUMN report_page.visits IS 'how often it was looked at';
COMMENT ON COLUMN report_page.changes IS 'how often it was found changed';
COMMENT ON COLUMN report_page.failures IS 'looks in a row without a good answer';
COMMENT ON COLUMN report_page.status IS 'HTTP status of the newest look; null if there was none';
COMMENT ON COLUMN report_page.reason IS 'why the newest look was no good one; empty if it was';
COMMENT ON COLUMN report_page.key IS 'the page, by 16 bytes that follow from its URL';
COMMENT ON COLUMN report_page.template IS 'URL template of its group; * for the pages of the domain that have none';
COMMENT ON COLUMN report_page.age IS 'time since the newest look that told what the page is';
COMMENT ON COLUMN report_page.next_interval IS
    'from the newest look to the next; null for a page that waits in its turn';
COMMENT ON COLUMN report_page.category IS
    'its state, but unread_list for a list never read, and dead_link for what never was there';
COMMENT ON COLUMN report_page.withheld_since IS
    'since when other content is withheld that may stand in place of the page; two days at most';
