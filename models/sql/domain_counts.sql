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
COMMENT ON COLUMN domain_counts.domain_id IS 'the domain, by number';
COMMENT ON COLUMN domain_counts.pages_new IS 'heard of and never fetched';
COMMENT ON COLUMN domain_counts.pages_known IS 'fetched, and there';
COMMENT ON COLUMN domain_counts.pages_gone IS 'not there any more';
COMMENT ON COLUMN domain_counts.dead_links IS 'addresses that lead to nothing, and never led to a page';
COMMENT ON COLUMN domain_counts.pages_moved IS 'that redirect for good';
COMMENT ON COLUMN domain_counts.pages_refused IS 'that may not be fetched';
COMMENT ON COLUMN domain_counts.pages_withheld IS 'whose new content is withheld';
COMMENT ON COLUMN domain_counts.counted_at IS 'when that was counted';
