CREATE VIEW domain_counts AS
SELECT g.domain_id, g.unfetched AS pages_unfetched, g.fetched AS pages_fetched, g.gone AS pages_gone, g.dead_links,
       g.moved AS pages_moved,
       g.excluded AS pages_excluded, g.withheld AS pages_withheld, g.counted_at
  FROM domain_figures g JOIN domain_counted_live l USING (domain_id)
 WHERE NOT l.is_live
 UNION ALL
SELECT s.domain_id, r.*, greatest(now(), s.last_visit_at)
  FROM domain_state s
  JOIN domain_counted_live l USING (domain_id)
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE c.category = 'unfetched'),
              count(*) FILTER (WHERE c.category = 'fetched'),
              count(*) FILTER (WHERE c.category = 'gone'),
              count(*) FILTER (WHERE c.category = 'dead_link'),
              count(*) FILTER (WHERE c.category = 'moved'),
              count(*) FILTER (WHERE c.category = 'excluded'),
              count(*) FILTER (WHERE c.withheld_since IS NOT NULL)
         FROM (SELECT page_category(f.state, p.version, u.kind) AS category, p.withheld_since
                 FROM frontier f
                 JOIN page p ON p.domain_id = s.domain_id AND p.key = f.key
                 LEFT JOIN url_list u ON u.domain_id = s.domain_id AND u.key = f.key
                WHERE f.domain_id = s.domain_id) c) r
 WHERE l.is_live;
COMMENT ON VIEW domain_counts IS
    'How many pages of each kind a domain has; the one source of these counts for every report.';
COMMENT ON COLUMN domain_counts.domain_id IS 'the domain, by number';
COMMENT ON COLUMN domain_counts.pages_unfetched IS 'heard of and never fetched';
COMMENT ON COLUMN domain_counts.pages_fetched IS 'fetched, and there';
COMMENT ON COLUMN domain_counts.pages_gone IS 'not there any more';
COMMENT ON COLUMN domain_counts.dead_links IS 'addresses that lead to nothing, and never led to a page';
COMMENT ON COLUMN domain_counts.pages_moved IS 'that redirect for good';
COMMENT ON COLUMN domain_counts.pages_excluded IS 'that may not be fetched';
COMMENT ON COLUMN domain_counts.pages_withheld IS 'whose new content is withheld';
COMMENT ON COLUMN domain_counts.counted_at IS 'when that was counted';
