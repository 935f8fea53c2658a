CREATE VIEW report_value AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       v.name,
       v.at,
       v.number,
       v.unit,
       lag(v.number) OVER (PARTITION BY v.domain_id, v.key, v.name ORDER BY v.at) AS previous,
       v.text,
       v.finding,
       v.version
  FROM page_value v
  JOIN domain d ON d.id = v.domain_id
  JOIN page p ON p.domain_id = v.domain_id AND p.key = v.key;
COMMENT ON VIEW report_value IS
    'The values that rules read from pages, such as prices, over time: one row for each change.';
COMMENT ON COLUMN report_value.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_value.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_value.url IS 'normalized URL of the page';
COMMENT ON COLUMN report_value.name IS 'name of the value, as in the rule';
COMMENT ON COLUMN report_value.at IS 'when the page was visited; the value is the same until the next row';
COMMENT ON COLUMN report_value.number IS 'the number; null if there is none';
COMMENT ON COLUMN report_value.unit IS 'unit of the rule, or the currency or % that the page shows; may be empty';
COMMENT ON COLUMN report_value.previous IS 'number of the row before; null if it has none or this is the first row';
COMMENT ON COLUMN report_value.text IS 'text that was read, shortened';
COMMENT ON COLUMN report_value.finding IS
    'why there is no number: not_found, no_number, ambiguous, too_large, other_unit, or gone (the page); several: there '
    'are different numbers, and the first was used; otherwise empty';
COMMENT ON COLUMN report_value.version IS 'number of the version of the page with this value';
