CREATE VIEW report_freshness AS
SELECT g.domain_id,
       d.authority AS domain,
       g.grouped_by,
       nullif(g.template, '') AS template,
       nullif(g.decile, 0)::int AS decile,
       g.pages,
       g.freshness,
       g.freshness_plain,
       g.mean_age,
       g.oldest_age,
       g.shortest_interval,
       g.mean_interval,
       g.longest_interval,
       f.counted_at
  FROM freshness_figures g
  JOIN domain_figures f USING (domain_id)
  JOIN domain_counted_live l USING (domain_id)
  JOIN domain d ON d.id = g.domain_id
 WHERE NOT l.is_live
 UNION ALL
SELECT d.id,
       d.authority,
       r.grouped_by,
       r.template,
       r.decile,
       r.pages,
       r.freshness,
       r.freshness_plain,
       r.mean_age,
       r.oldest_age,
       r.shortest_interval,
       r.mean_interval,
       r.longest_interval,
       greatest(now(), s.last_visit_at)
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  JOIN domain_counted_live l ON l.domain_id = d.id
 CROSS JOIN LATERAL (
SELECT CASE WHEN grouping(template) = 0 THEN 'template' WHEN grouping(decile) = 0 THEN 'decile' ELSE 'domain' END
           AS grouped_by,
       template,
       decile,
       sum(pages)::bigint AS pages,
       sum(fresh_importance) / nullif(sum(importance), 0) AS freshness,
       sum(fresh_pages) / sum(pages)::float8 AS freshness_plain,
       make_interval(secs => sum(age_s) / sum(pages)::float8) AS mean_age,
       make_interval(secs => max(oldest_s)) AS oldest_age,
       make_interval(secs => min(shortest_s)) AS shortest_interval,
       make_interval(secs => sum(interval_s) / sum(pages)::float8) AS mean_interval,
       make_interval(secs => max(longest_s)) AS longest_interval
  FROM (SELECT template, decile, count(*) AS pages, sum(importance) AS importance,
               sum(importance * freshness) AS fresh_importance, sum(freshness) AS fresh_pages,
               sum(age_s) AS age_s, max(age_s) AS oldest_s, sum(interval_s) AS interval_s,
               min(interval_s) AS shortest_s, max(interval_s) AS longest_s
          FROM (SELECT template, importance, freshness,
                       extract(epoch FROM age)::float8 AS age_s,
                       extract(epoch FROM next_interval)::float8 AS interval_s,
                       ntile(10) OVER (ORDER BY importance DESC NULLS LAST) AS decile
                  FROM (SELECT template, importance, freshness, age, next_interval
                          FROM report_page p
                         WHERE p.domain_id = d.id AND state = 'fetched' AND version > 0 OFFSET 0) x  -- OFFSET 0: compute once
               ) p
         GROUP BY template, decile) g
 GROUP BY GROUPING SETS ((), (template), (decile)) HAVING sum(pages) > 0) r
 WHERE l.is_live;
COMMENT ON VIEW report_freshness IS
    'Freshness, age and revisit intervals of the fetched pages: by domain, by URL template, and by decile of '
    'importance.';
COMMENT ON COLUMN report_freshness.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_freshness.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_freshness.grouped_by IS 'domain, template or decile: which pages the row summarizes';
COMMENT ON COLUMN report_freshness.template IS
    'URL template of the pages, if grouped by template; * for pages without one';
COMMENT ON COLUMN report_freshness.decile IS
    'tenth of the pages, if grouped by decile: 1 for the most important, 10 for the least important';
COMMENT ON COLUMN report_freshness.pages IS 'fetched pages that have a version';
COMMENT ON COLUMN report_freshness.freshness IS
    'expected share of these pages, weighted by importance, whose stored copy is current; 0 to 1';
COMMENT ON COLUMN report_freshness.freshness_plain IS 'the same share, unweighted';
COMMENT ON COLUMN report_freshness.mean_age IS 'mean time since the last successful visit';
COMMENT ON COLUMN report_freshness.oldest_age IS 'longest time since the last successful visit';
COMMENT ON COLUMN report_freshness.shortest_interval IS
    'shortest interval between the last visit and the next due time';
COMMENT ON COLUMN report_freshness.mean_interval IS 'mean interval between the last visit and the next due time';
COMMENT ON COLUMN report_freshness.longest_interval IS 'longest interval between the last visit and the next due time';
COMMENT ON COLUMN report_freshness.counted_at IS
    'when the figures were computed: at the last count if the domain has more than 2000 pages or was not visited '
    'since, otherwise now; ages refer to this time';
