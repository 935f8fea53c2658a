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
            WHEN f.state = 'fetched' AND p.version > 0 AND h.effective_recall IS NULL  -- Postgres inlines it
            THEN page_freshness(g.a + p.rate_a, g.b + p.rate_b,
                                activity_gap(greatest(now(), s.last_visit_at), s.activity_at, s.activity_ahead,
                                         p.last_good_at), coalesce(k.calibration, 1))
            WHEN f.state = 'fetched' AND p.version > 0
            THEN page_freshness(g.a + p.rate_a, g.b + p.rate_b,
                                signal_gap(activity_gap(greatest(now(), s.last_visit_at), s.activity_at,
                                                   s.activity_ahead, p.last_good_at),
                                          p.signals,
                                          h.recall, h.noise, h.effective_recall, g.a + p.rate_a, g.b + p.rate_b),
                                coalesce(k.calibration, 1))
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
  LEFT JOIN (SELECT domain_id, least(1, (1 + sum(found))::float8 / (1 + sum(expected))) AS calibration
               FROM calibration
              WHERE day >= (now() AT TIME ZONE 'UTC')::date - 14
              GROUP BY domain_id) k ON k.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN url_list u ON u.domain_id = d.id AND u.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;
COMMENT ON VIEW report_page IS
    'Every page of every domain. Filter by domain_id rather than by domain, to read a single partition.';
COMMENT ON COLUMN report_page.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_page.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_page.url IS 'normalized URL of the page';
COMMENT ON COLUMN report_page.state IS 'unfetched, fetched, gone, moved or excluded';
COMMENT ON COLUMN report_page.importance IS
    'importance relative to the mean page of the domain (mean 1); null for pages that take no part in OPIC';
COMMENT ON COLUMN report_page.popularity IS
    'importance by links (mean 1); equals importance unless the discovery order of the domain is mixed';
COMMENT ON COLUMN report_page.url_score IS
    'importance by the URL alone, used in discovery order mixed: 1 at two folders deep, doubled for each folder less, '
    'halved for each further folder and for a query, and multiplied by the boost factor if boosted';
COMMENT ON COLUMN report_page.boosted IS 'whether the page matches a --boost pattern';
COMMENT ON COLUMN report_page.freshness IS
    'probability that the stored copy is current; null for pages that are not fetched or have no version, and for '
    'duplicates, because their text counts once, on the canonical page';
COMMENT ON COLUMN report_page.changes_per_day IS 'estimated change rate: mean of the Gamma posterior';
COMMENT ON COLUMN report_page.version IS 'number of the newest version; 0 if there is none';
COMMENT ON COLUMN report_page.due_at IS
    'when the page is due; for an unfetched page, until when it is deferred, or null if it waits in discovery order';
COMMENT ON COLUMN report_page.depth IS 'number of links from the nearest seed';
COMMENT ON COLUMN report_page.first_seen_at IS 'when the URL was discovered';
COMMENT ON COLUMN report_page.last_visit_at IS 'last visit, successful or not';
COMMENT ON COLUMN report_page.last_good_at IS 'last successful visit: it showed the state of the page';
COMMENT ON COLUMN report_page.last_change_at IS 'last visit that found a change';
COMMENT ON COLUMN report_page.visits IS 'number of visits';
COMMENT ON COLUMN report_page.changes IS 'number of visits that found a change';
COMMENT ON COLUMN report_page.failures IS 'consecutive failed visits';
COMMENT ON COLUMN report_page.status IS 'HTTP status of the last visit; null if there was no visit or no response';
COMMENT ON COLUMN report_page.reason IS
    'why the last visit failed, or why the page is gone, excluded or moved out of the scope; otherwise empty';
COMMENT ON COLUMN report_page.key IS '16-byte key of the page, derived from its URL';
COMMENT ON COLUMN report_page.template IS 'URL template of the page''s group; * for pages without one';
COMMENT ON COLUMN report_page.age IS 'time since the last successful visit';
COMMENT ON COLUMN report_page.next_interval IS
    'interval between the last visit and the next due time; null if one of them is missing';
COMMENT ON COLUMN report_page.category IS
    'how reports count the page: its state, or unread_list for a list never read, or dead_link for a URL that was '
    'never a page';
COMMENT ON COLUMN report_page.withheld_since IS
    'since when new content of the page is withheld as a possible soft error; for at most two days';
