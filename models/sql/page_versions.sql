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
    'Every version of every page: written when a page is seen first, changed, or is back with other words.';
COMMENT ON COLUMN page_versions.domain_id IS 'the domain, by number';
COMMENT ON COLUMN page_versions.domain IS 'the domain, by name';
COMMENT ON COLUMN page_versions.url IS 'the page''s one spelling';
COMMENT ON COLUMN page_versions.key IS 'the page, by 16 bytes that follow from its URL';
COMMENT ON COLUMN page_versions.version IS 'counted from 1 without gaps';
COMMENT ON COLUMN page_versions.at IS 'when it was first seen';
COMMENT ON COLUMN page_versions.until IS 'when the next version was first seen; null for the newest';
COMMENT ON COLUMN page_versions.change IS 'first, changed or back; null for a list of URLs';
COMMENT ON COLUMN page_versions.parts IS
    'what changed: text, link, image, title, meta; empty where the blocks were not compared';
COMMENT ON COLUMN page_versions.magnitude IS 'the part of the page that changed, 0 to 1; null where nobody can tell';
COMMENT ON COLUMN page_versions.title IS 'its title';
COMMENT ON COLUMN page_versions.language IS 'the language that it says it is in; empty if it says none';
COMMENT ON COLUMN page_versions.content_type IS 'the media type that its server gave';
COMMENT ON COLUMN page_versions.text_bytes IS 'size of its main text';
COMMENT ON COLUMN page_versions.body_bytes IS 'size of its body before compression; null where the body is not kept';
COMMENT ON COLUMN page_versions.is_rendered IS 'whether its body is the document that a browser made of the page';
COMMENT ON COLUMN page_versions.is_stored IS 'whether its text is kept; of others only this row is (recrawl prune)';
