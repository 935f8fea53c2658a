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
    'Pages of a domain whose main texts are nearly identical, as of the last plan or the last run of recrawl '
    'duplicates. Filter by domain_id to read a single partition.';
COMMENT ON COLUMN report_duplicates.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_duplicates.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_duplicates.url IS 'a page';
COMMENT ON COLUMN report_duplicates.near_url IS
    'another page with nearly the same main text; of several pages with that text, only one is shown';
COMMENT ON COLUMN report_duplicates.near_pages IS 'number of pages with the text of near_url';
COMMENT ON COLUMN report_duplicates.distance_bits IS 'how many of the 64 bits of the two fingerprints differ; 0 to 3';
