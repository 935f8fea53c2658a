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
    'Number of pages of each category in each domain.';
COMMENT ON COLUMN domain_counts.domain_id IS 'number of the domain';
COMMENT ON COLUMN domain_counts.pages_unfetched IS 'discovered, not fetched yet';
COMMENT ON COLUMN domain_counts.pages_fetched IS 'fetched, and still there';
COMMENT ON COLUMN domain_counts.pages_gone IS 'fetched before, removed since';
COMMENT ON COLUMN domain_counts.dead_links IS 'URLs that do not exist and never were a page';
COMMENT ON COLUMN domain_counts.pages_moved IS 'permanently redirected to another URL';
COMMENT ON COLUMN domain_counts.pages_excluded IS 'excluded by robots.txt or by the scope of the domain';
COMMENT ON COLUMN domain_counts.pages_withheld IS 'pages whose new content is withheld as a possible soft error';
COMMENT ON COLUMN domain_counts.counted_at IS 'when the pages were counted';
