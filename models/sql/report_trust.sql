CREATE VIEW report_trust AS
SELECT t.domain_id,
       d.authority AS domain,
       g.template,
       s.validator,
       CASE WHEN (s.found->>'missed')::float8 > 0.25 * ((s.found->>'changes_seen')::float8 + 1) THEN 'lies'
            WHEN (s.found->>'flapped')::float8 > 0.25 * ((s.found->>'unchanged')::float8 + 1) THEN 'flaps'
            ELSE 'honest' END AS rating,
       (s.found->>'changes_seen')::float8 AS changes_seen,
       (s.found->>'missed')::float8 AS missed,
       (s.found->>'unchanged')::float8 AS unchanged,
       (s.found->>'flapped')::float8 AS flapped,
       t.validator_checks,
       t.revisits
  FROM domain_trust t
  JOIN domain d ON d.id = t.domain_id
  JOIN prior g ON g.domain_id = t.domain_id AND g.no = t.prior_no
  CROSS JOIN LATERAL jsonb_each(t.stats) AS s(validator, found);
COMMENT ON VIEW report_trust IS 'How reliable the validators of servers are, by group of pages and validator.';
COMMENT ON COLUMN report_trust.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_trust.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_trust.template IS 'URL template of the group; * for pages without one';
COMMENT ON COLUMN report_trust.validator IS
    'etag, last_modified; length: length of the body; date: Last-Modified compared as a time; condition: whether '
    'the server responds 304 while its validator is unchanged; head: whether the response to HEAD agrees with the '
    'one to GET';
COMMENT ON COLUMN report_trust.rating IS
    'honest; lies: often unchanged although the page changed; flaps: often changed although the page did not. A '
    'validator that lies is not sent; condition and head are not used if they lie or flap';
COMMENT ON COLUMN report_trust.changes_seen IS
    'visits that found a change and could compare the validator; older visits count less';
COMMENT ON COLUMN report_trust.missed IS 'of these, visits in which the validator was unchanged';
COMMENT ON COLUMN report_trust.unchanged IS 'visits that found an unchanged body; older visits count less';
COMMENT ON COLUMN report_trust.flapped IS 'of these, visits in which the validator had changed';
COMMENT ON COLUMN report_trust.validator_checks IS
    'fetches without validators, to check them: of all pages and validators of the group';
COMMENT ON COLUMN report_trust.revisits IS
    'visits to pages with validators since a validator was last wrong; the more of them, the rarer validator checks '
    'become';
