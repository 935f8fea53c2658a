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
    'Which domains the reports count while they are asked, and do not read in table domain_figures: those never counted,
and small ones that were looked at since, or were counted more than three hours ago.';
COMMENT ON COLUMN domain_counted_live.domain_id IS 'the domain, by number';
COMMENT ON COLUMN domain_counted_live.is_live IS 'whether it is counted while a report is asked';
