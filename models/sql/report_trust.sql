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
COMMENT ON VIEW report_trust IS 'How far the validators of servers can be believed, by group of pages and validator.';
COMMENT ON COLUMN report_trust.domain_id IS 'the domain, by number';
COMMENT ON COLUMN report_trust.domain IS 'the domain, by name';
COMMENT ON COLUMN report_trust.template IS 'the URLs of the group; * for those of no known template';
COMMENT ON COLUMN report_trust.validator IS
    'etag, last_modified; length: of the body; date: Last-Modified as an instant; condition: whether the server answers 304 while its validator is unchanged; head: whether a HEAD tells what the body would';
COMMENT ON COLUMN report_trust.rating IS
    'honest; lies: unchanged although the page changed, so it is not sent; flaps: changed although the page did not. condition and head that lie or flap are of no use';
COMMENT ON COLUMN report_trust.changes_seen IS
    'looks that found a change and what the validator says of it; fading, the newest counts 1';
COMMENT ON COLUMN report_trust.missed IS 'of them, those where the validator said that nothing had changed';
COMMENT ON COLUMN report_trust.unchanged IS 'looks that found an unchanged body; fading, too';
COMMENT ON COLUMN report_trust.flapped IS 'of them, those where the validator had changed';
COMMENT ON COLUMN report_trust.validator_checks IS 'full looks in spite of validators, at all pages of the group';
COMMENT ON COLUMN report_trust.revisits IS
    'looks at pages with validators since the last lie: the more, the fewer of them are validator_checks';
