CREATE VIEW report_feed AS
SELECT d.id AS domain_id, d.authority AS domain, s.forgotten_until, s.next_event - s.first_event AS changes
  FROM domain d JOIN domain_state s ON s.domain_id = d.id;
COMMENT ON VIEW report_feed IS 'How far back the change feed of each domain goes.';
COMMENT ON COLUMN report_feed.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_feed.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_feed.forgotten_until IS
    'position of the last deleted change; a cursor below it has missed changes';
COMMENT ON COLUMN report_feed.changes IS 'number of stored changes';
