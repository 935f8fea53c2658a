CREATE VIEW report_calibration AS
SELECT k.domain_id, d.authority AS domain, k.day, k.audit, k.visits, k.expected / k.visits AS expected_change,
       k.found::float8 / k.visits AS found_change,
       (k.found - k.expected) / nullif(sqrt(k.variance), 0) AS deviations
  FROM calibration k JOIN domain d ON d.id = k.domain_id
 WHERE k.visits > 0;
COMMENT ON VIEW report_calibration IS
    'Predicted probabilities of a change compared with the changes that visits found, by day.';
COMMENT ON COLUMN report_calibration.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_calibration.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_calibration.day IS 'UTC day of the visits';
COMMENT ON COLUMN report_calibration.audit IS
    'true: visits of the random sample (audit), which check the reported freshness; false: all other visits';
COMMENT ON COLUMN report_calibration.visits IS 'visits that found the page changed or unchanged';
COMMENT ON COLUMN report_calibration.expected_change IS 'mean predicted probability of a change';
COMMENT ON COLUMN report_calibration.found_change IS 'share of these visits that found a change';
COMMENT ON COLUMN report_calibration.deviations IS
    'standard deviations by which the changes found exceed the prediction; beyond 3 (or -3) the prediction is biased';
