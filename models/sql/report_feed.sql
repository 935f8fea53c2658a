CREATE VIEW report_feed AS
SELECT d.id AS domain_id, d.authority AS domain, s.forgotten_until, s.next_event - s.first_event AS changes
  FROM domain d JOIN domain_state s ON s.domain_id = d.id;
COMMENT ON VIEW report_feed IS 'How far the change feed of each domain goes back.';
COMMENT ON COLUMN report_feed.domain_id IS 'the domain, by number';
COMMENT ON COLUMN report_feed.domain IS 'the domain, by name';
COMMENT ON COLUMN report_feed.forgotten_until IS
    'the last position of its changes that are not kept any more; a lower cursor has missed some';
COMMENT ON COLUMN report_feed.changes IS 'how many of its changes are kept';
