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
    'Sources of change signals of each domain, and what looks have shown their word to be worth.';
COMMENT ON COLUMN report_source.domain_id IS 'column id of domain';
COMMENT ON COLUMN report_source.domain IS 'host, with its port if that is not the usual one';
COMMENT ON COLUMN report_source.source IS 'sitemap, feed, hub, deploy, push, or the name that a hint gave';
COMMENT ON COLUMN report_source.signals IS 'taken in so far';
COMMENT ON COLUMN report_source.recall IS
    'the chance that it tells a change, as it counts today: 0 until looks have shown that it tells something';
COMMENT ON COLUMN report_source.precision IS 'share of its signals that were true, among those looked into of late';
COMMENT ON COLUMN report_source.false_per_page_day IS 'signals without a change, per page and day';
COMMENT ON COLUMN report_source.effective_recall IS 'by so much slower a page ages about which it says nothing, 0 to 1';
COMMENT ON COLUMN report_source.measured_at IS 'when its word was last measured, UTC';
