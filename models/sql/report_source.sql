CREATE VIEW report_source AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       o.source,
       o.signals,
       o.recall,
       (o.record->>'true_signals')::float8 / nullif((o.record->>'true_signals')::float8 + (o.record->>'false_signals')::float8, 0)
           AS precision,
       o.noise AS false_per_page_day,
       o.effective_recall,
       o.measured_at
  FROM domain_source o
  JOIN domain d ON d.id = o.domain_id;
COMMENT ON VIEW report_source IS
    'Sources of change signals of each domain, with the precision and recall that visits measured.';
COMMENT ON COLUMN report_source.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_source.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_source.source IS 'sitemap, feed, hub, push, or the name given with a hint';
COMMENT ON COLUMN report_source.signals IS 'signals received so far';
COMMENT ON COLUMN report_source.recall IS
    'share of changes that the source signals, as used for scheduling; 0 until visits have shown that its signals are '
    'true';
COMMENT ON COLUMN report_source.precision IS 'share of recently checked signals that were true';
COMMENT ON COLUMN report_source.false_per_page_day IS 'false signals per page and day';
COMMENT ON COLUMN report_source.effective_recall IS
    'recall, reduced while the source sends fewer signals than usual; 0 to 1. By this share, a page without a signal '
    'ages more slowly';
COMMENT ON COLUMN report_source.measured_at IS 'when precision and recall were last measured';
