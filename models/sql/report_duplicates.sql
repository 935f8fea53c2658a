CREATE VIEW report_duplicates AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       o.url AS near_url,
       h.pages AS near_pages,
       distance_bits(a.fingerprint, n.fingerprint) AS distance_bits
  FROM domain d
  JOIN page_fingerprint a ON a.domain_id = d.id
  JOIN page p ON p.domain_id = d.id AND p.key = a.key
  CROSS JOIN LATERAL (
       SELECT DISTINCT b.fingerprint
         FROM generate_series(0, 3) q
         JOIN fingerprint_band b ON b.domain_id = a.domain_id AND b.band = fingerprint_band(a.fingerprint, q)
        WHERE distance_bits(a.fingerprint, b.fingerprint) <= 3) n
  JOIN (SELECT DISTINCT ON (domain_id, fingerprint)
               domain_id, fingerprint, key, count(*) OVER (PARTITION BY domain_id, fingerprint) AS pages
          FROM page_fingerprint
         ORDER BY domain_id, fingerprint, key) h ON h.domain_id = d.id AND h.fingerprint = n.fingerprint
  JOIN page o ON o.domain_id = d.id AND o.key = h.key
 WHERE h.key <> a.key;
COMMENT ON VIEW report_duplicates IS
    'Pages of a domain whose main texts are nearly the same, as of the last plan or recrawl duplicates. Say domain_id = ..., so that one partition is read.';
COMMENT ON COLUMN report_duplicates.domain_id IS 'the domain, by number';
COMMENT ON COLUMN report_duplicates.domain IS 'the domain, by name';
COMMENT ON COLUMN report_duplicates.url IS 'a page';
COMMENT ON COLUMN report_duplicates.near_url IS
    'another one whose main text is nearly the same; the first of those that have the very same text';
COMMENT ON COLUMN report_duplicates.near_pages IS 'how many pages have that text';
COMMENT ON COLUMN report_duplicates.distance_bits IS 'bits of 64 in which their fingerprints differ, 0 to 3';
