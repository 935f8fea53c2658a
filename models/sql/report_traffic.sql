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
COMMENT ON VIEW report_traffic IS 'The traffic of domains by the hour, from their visits.';
COMMENT ON COLUMN report_traffic.domain_id IS 'the domain, by number';
COMMENT ON COLUMN report_traffic.domain IS 'the domain, by name';
COMMENT ON COLUMN report_traffic.hour IS 'when the hour began, in knowledge time';
COMMENT ON COLUMN report_traffic.visits IS 'looks for which anything was sent';
COMMENT ON COLUMN report_traffic.requests IS 'requests of these looks; robots.txt and logins are not among them';
COMMENT ON COLUMN report_traffic.received_bytes IS 'bytes that came for them';
COMMENT ON COLUMN report_traffic.errors IS 'looks without an answer, or with status 429 or 5xx';
COMMENT ON COLUMN report_traffic.latency_ms IS 'the median time of an answer, in milliseconds';
