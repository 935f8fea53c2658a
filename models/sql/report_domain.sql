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
       coalesce(n.pages_withheld, 0) AS pages_withheld
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
COMMENT ON VIEW report_domain IS
    'Every registered domain: what it holds, how fresh that is now, and when it is crawled next.';
COMMENT ON COLUMN report_domain.domain_id IS
    'what the other tables and views call the domain; a constant here reads one partition only';
COMMENT ON COLUMN report_domain.domain IS 'host, and port where it is not the usual one';
COMMENT ON COLUMN report_domain.state IS 'active, or paused by its user';
COMMENT ON COLUMN report_domain.importance IS
    'across domains, mean 1, times its user''s weight; the weight alone until planned';
COMMENT ON COLUMN report_domain.registered_at IS 'when it was registered';
COMMENT ON COLUMN report_domain.pages_unfetched IS 'heard of and never fetched';
COMMENT ON COLUMN report_domain.pages_fetched IS 'looked at again and again';
COMMENT ON COLUMN report_domain.pages_gone IS 'not there any more; looked at now and then';
COMMENT ON COLUMN report_domain.pages_moved IS 'redirect to another address for good';
COMMENT ON COLUMN report_domain.pages_excluded IS 'robots.txt or the scope of the domain refuses them';
COMMENT ON COLUMN report_domain.freshness IS
    'expected share, 0 to 1, of known pages that are as they were when last seen, by importance';
COMMENT ON COLUMN report_domain.freshness_plain IS
    'expected share, 0 to 1, of known pages that are as they were when last seen, unweighted';
COMMENT ON COLUMN report_domain.oldest_visit_at IS
    'of the known pages, when the one that was longest not looked at was looked at';
COMMENT ON COLUMN report_domain.last_visit_at IS 'the newest look, in knowledge time';
COMMENT ON COLUMN report_domain.next_due_at IS 'when something of it is due next; null if nothing ever was';
COMMENT ON COLUMN report_domain.suspended_until IS
    'no request is sent before: the domain asked for it, or did not answer; null if it may be asked';
COMMENT ON COLUMN report_domain.suspension_reason IS 'why the domain is on hold';
COMMENT ON COLUMN report_domain.budget_per_day IS 'requests in a UTC day, at most; null for no limit';
COMMENT ON COLUMN report_domain.spent_today IS 'requests of this UTC day';
COMMENT ON COLUMN report_domain.holder IS 'the worker that crawls it now: machine, process, role';
COMMENT ON COLUMN report_domain.counted_at IS
    'when that was counted: now, or in a domain of more than 2000 pages by the last plan; ages are of then';
COMMENT ON COLUMN report_domain.dead_links IS 'addresses that lead to nothing, and never led to a page';
COMMENT ON COLUMN report_domain.pages_withheld IS
    'pages whose new content is withheld, as it may stand in place of them; two days at most';
