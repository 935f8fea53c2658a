CREATE VIEW report_calibration AS
SELECT k.domain_id, d.authority AS domain, k.day, k.audit, k.visits, k.expected / k.visits AS expected_change,
       k.found::float8 / k.visits AS found_change,
       (k.found - k.expected) / nullif(sqrt(k.variance), 0) AS deviations
  FROM calibration k JOIN domain d ON d.id = k.domain_id
 WHERE k.visits > 0;
COMMENT ON VIEW report_calibration IS
    'How well the chances of change that were given before looks agree with what the looks found, by day.';
COMMENT ON COLUMN report_calibration.domain_id IS 'the domain, by number';
COMMENT ON COLUMN report_calibration.domain IS 'the domain, by name';
COMMENT ON COLUMN report_calibration.day IS 'UTC day of the looks';
COMMENT ON COLUMN report_calibration.audit IS
    'true: looks at a random sample, which tell of the freshness report; false: all the others';
COMMENT ON COLUMN report_calibration.visits IS 'looks that told changed from same';
COMMENT ON COLUMN report_calibration.expected_change IS 'the mean chance that was given for a change';
COMMENT ON COLUMN report_calibration.found_change IS 'the share that had changed';
COMMENT ON COLUMN report_calibration.deviations IS
    'by how many standard deviations more changes were found than expected; beyond 3 something is off';
