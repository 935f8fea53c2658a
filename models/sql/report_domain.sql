CREATE VIEW report_domain AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.state,
       coalesce(l.importance, d.weight) AS importance,
       d.registered_at,
       coalesce(n.pages_unfetched, 0) AS pages_unfetched,
       coalesce(n.pages_fetched, 0) AS pages_fetched,
       coalesce(n.pages_gone, 0) AS pages_gone,
       coalesce(n.pages_moved, 0) AS pages_moved,
       coalesce(n.pages_excluded, 0) AS pages_excluded,
       r.freshness,
       r.freshness_plain,
       r.oldest_visit_at,
       s.last_visit_at,
       s.wake_at AS next_due_at,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_at END AS suspended_until,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_reason END AS suspension_reason,
       d.budget_per_day,
       CASE WHEN s.budget_day = (greatest(now(), s.last_visit_at) AT TIME ZONE 'UTC')::date
            THEN s.spent_requests ELSE 0 END AS spent_today,
       CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder,
       n.counted_at,
       coalesce(n.dead_links, 0) AS dead_links,
       coalesce(n.pages_withheld, 0) AS pages_withheld,
       ARRAY(SELECT g.tag FROM domain_tag g WHERE g.domain_id = d.id ORDER BY g.tag) AS tags
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  LEFT JOIN domain_plan l ON l.domain_id = d.id
  LEFT JOIN domain_counts n ON n.domain_id = d.id
  LEFT JOIN (
       SELECT g.domain_id, g.freshness, g.freshness_plain, g.oldest_visit_at
         FROM domain_figures g JOIN domain_counted_live l USING (domain_id)
        WHERE NOT l.is_live
        UNION ALL
       SELECT l.domain_id, r.*
         FROM domain_counted_live l
        CROSS JOIN LATERAL (
              SELECT sum(r.importance * r.freshness)
                         / nullif(sum(r.importance) FILTER (WHERE r.freshness IS NOT NULL), 0),
                     avg(r.freshness),
                     min(r.last_visit_at) FILTER (WHERE r.freshness IS NOT NULL)
                FROM report_page r WHERE r.domain_id = l.domain_id) r
        WHERE l.is_live) r ON r.domain_id = d.id;
COMMENT ON VIEW report_domain IS 'Every registered domain: its pages, their freshness now, and the next due time.';
COMMENT ON COLUMN report_domain.domain_id IS
    'number of the domain in all tables and views; filter by a constant to read a single partition';
COMMENT ON COLUMN report_domain.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_domain.state IS 'active or paused';
COMMENT ON COLUMN report_domain.importance IS
    'importance among all domains (mean 1) times your weight; the weight alone until the first plan';
COMMENT ON COLUMN report_domain.registered_at IS 'when the domain was registered';
COMMENT ON COLUMN report_domain.pages_unfetched IS 'discovered, not fetched yet';
COMMENT ON COLUMN report_domain.pages_fetched IS 'fetched, and still there; revisited when due';
COMMENT ON COLUMN report_domain.pages_gone IS 'removed since they were fetched; revisited rarely';
COMMENT ON COLUMN report_domain.pages_moved IS 'permanently redirected to another URL';
COMMENT ON COLUMN report_domain.pages_excluded IS 'excluded by robots.txt or by the scope of the domain';
COMMENT ON COLUMN report_domain.freshness IS
    'expected share of fetched pages, weighted by importance, whose stored copy is current; 0 to 1';
COMMENT ON COLUMN report_domain.freshness_plain IS
    'expected share of fetched pages, unweighted, whose stored copy is current; 0 to 1';
COMMENT ON COLUMN report_domain.oldest_visit_at IS
    'last visit of the fetched page that has waited longest for a revisit';
COMMENT ON COLUMN report_domain.last_visit_at IS 'last visit of any page';
COMMENT ON COLUMN report_domain.next_due_at IS
    'when the domain is crawled next, unless it is paused or suspended; null if no page will ever be due';
COMMENT ON COLUMN report_domain.suspended_until IS
    'no requests are sent before this time, because the server requested it or did not respond; null if requests '
    'are allowed';
COMMENT ON COLUMN report_domain.suspension_reason IS 'why the domain is suspended';
COMMENT ON COLUMN report_domain.budget_per_day IS 'maximum number of requests per UTC day; null for no limit';
COMMENT ON COLUMN report_domain.spent_today IS 'requests sent on this UTC day';
COMMENT ON COLUMN report_domain.holder IS 'worker that crawls the domain now: machine, process, role';
COMMENT ON COLUMN report_domain.counted_at IS
    'when pages and freshness were computed: at the last count if the domain has more than 2000 pages or was not '
    'visited since, otherwise now';
COMMENT ON COLUMN report_domain.dead_links IS 'URLs that do not exist and never were a page';
COMMENT ON COLUMN report_domain.pages_withheld IS
    'pages whose new content is withheld as a possible soft error, for at most two days';
COMMENT ON COLUMN report_domain.tags IS 'names of its tags, in alphabetical order';
