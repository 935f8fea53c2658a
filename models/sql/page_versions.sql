CREATE VIEW page_versions AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       p.key,
       v.number AS version,
       v.at,
       (SELECT n.at FROM snapshot n
         WHERE n.domain_id = d.id AND n.key = v.key AND n.number > v.number ORDER BY n.number LIMIT 1) AS until,
       e.change,
       e.parts,
       e.magnitude,
       v.title,
       v.language,
       v.content_type,
       octet_length(v.text) AS text_bytes,
       c.body_bytes,
       v.is_rendered,
       v.is_stored
  FROM domain d
  JOIN page p ON p.domain_id = d.id
  JOIN snapshot v ON v.domain_id = d.id AND v.key = p.key
  LEFT JOIN LATERAL (SELECT o.change, o.parts, o.magnitude FROM event o
                      WHERE o.domain_id = d.id AND o.key = v.key AND o.version = v.number AND o.at = v.at
                      ORDER BY o.number LIMIT 1) e ON true
  LEFT JOIN content c ON c.domain_id = d.id AND c.digest = v.body_digest AND v.is_stored;
COMMENT ON VIEW page_versions IS
    'The versions of every page. A version is stored when a page is added, changed, or restored with a different text.';
COMMENT ON COLUMN page_versions.domain_id IS 'number of the domain';
COMMENT ON COLUMN page_versions.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN page_versions.url IS 'normalized URL of the page';
COMMENT ON COLUMN page_versions.key IS '16-byte key of the page, derived from its URL';
COMMENT ON COLUMN page_versions.version IS 'number of the version, counted from 1';
COMMENT ON COLUMN page_versions.at IS 'when this version was first seen';
COMMENT ON COLUMN page_versions.until IS 'when the next version was first seen; null for the newest';
COMMENT ON COLUMN page_versions.change IS 'added, changed or restored; null for a URL list';
COMMENT ON COLUMN page_versions.parts IS
    'what changed: text, link, image, title, meta; empty if the blocks were not compared';
COMMENT ON COLUMN page_versions.magnitude IS 'change magnitude: share of the page that changed, 0 to 1; null if unknown';
COMMENT ON COLUMN page_versions.title IS 'title of the page';
COMMENT ON COLUMN page_versions.language IS 'language that the page declares; empty if it declares none';
COMMENT ON COLUMN page_versions.content_type IS 'media type that the server sent';
COMMENT ON COLUMN page_versions.text_bytes IS 'size of the text';
COMMENT ON COLUMN page_versions.body_bytes IS
    'size of the body before compression; null if the body is no longer stored';
COMMENT ON COLUMN page_versions.is_rendered IS 'whether the body is the document rendered by a browser';
COMMENT ON COLUMN page_versions.is_stored IS
    'whether texts and body are still stored; recrawl prune deletes those of older versions and keeps this row';
