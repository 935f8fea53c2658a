CREATE VIEW report_traffic AS
SELECT d.id AS domain_id, d.authority AS domain, v.hour, v.visits, v.requests, v.received_bytes, v.errors, v.latency_ms
  FROM domain d
  JOIN (SELECT domain_id, date_trunc('hour', at, 'UTC') AS hour,
               count(*) FILTER (WHERE requests > 0) AS visits,
               coalesce(sum(requests), 0) AS requests,
               coalesce(sum(received_bytes::bigint), 0)::bigint AS received_bytes,
               count(*) FILTER (WHERE requests > 0 AND (outcome = 'unreached' OR status = 429 OR status >= 500))
                   AS errors,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY elapsed_ms)
                   FILTER (WHERE requests > 0 AND outcome <> 'unreached') AS latency_ms
          FROM every_visit GROUP BY 1, 2) v ON v.domain_id = d.id;
COMMENT ON VIEW report_traffic IS 'Traffic of each domain by hour, computed from its visits.';
COMMENT ON COLUMN report_traffic.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_traffic.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_traffic.hour IS 'start of the hour';
COMMENT ON COLUMN report_traffic.visits IS 'visits that sent at least one request';
COMMENT ON COLUMN report_traffic.requests IS 'requests of these visits, without robots.txt and logins';
COMMENT ON COLUMN report_traffic.received_bytes IS 'bytes received by these visits';
COMMENT ON COLUMN report_traffic.errors IS 'visits without a response, or with status 429 or 5xx';
COMMENT ON COLUMN report_traffic.latency_ms IS 'median response time in milliseconds';
