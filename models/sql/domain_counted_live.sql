CREATE VIEW domain_counted_live AS
SELECT domain_id,
       counted_at IS NULL
           OR is_outdated AND sum(tracked) FILTER (WHERE is_outdated) OVER (ORDER BY tracked, domain_id) <= 100000
           AS is_live
  FROM (SELECT s.domain_id, s.tracked, g.counted_at,
               s.tracked <= 2000 AND (coalesce(s.last_visit_at > g.counted_at, false)
                                      OR g.counted_at < now() - interval '3 hours') AS is_outdated
          FROM domain_state s LEFT JOIN domain_figures g USING (domain_id)) x;
COMMENT ON VIEW domain_counted_live IS
    'For each domain, whether reports count its pages at query time instead of reading the counts from table '
    'domain_figures: they do if it was never counted, or if it is small and was visited since the last count or '
    'counted more than three hours ago. The small domains counted at once have at most 100,000 pages in all.';
COMMENT ON COLUMN domain_counted_live.domain_id IS 'number of the domain';
COMMENT ON COLUMN domain_counted_live.is_live IS 'whether the domain is counted at query time';
