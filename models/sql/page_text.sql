CREATE VIEW page_text AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       p.key,
       f.state,
       p.version,
       v.at,
       v.title,
       v.language,
       v.content_type,
       version_content(v.text, v.content, v.content_ranges) AS content,
       v.confidence,
       v.text,
       v.meta AS metadata
  FROM domain d
  JOIN page p ON p.domain_id = d.id
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  JOIN snapshot v ON v.domain_id = d.id AND v.key = p.key AND v.number = p.version;
COMMENT ON VIEW page_text IS
    'The newest texts of every page. Filter by domain_id rather than by domain, to read a single partition.';
COMMENT ON COLUMN page_text.domain_id IS 'number of the domain';
COMMENT ON COLUMN page_text.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN page_text.url IS 'normalized URL of the page';
COMMENT ON COLUMN page_text.key IS '16-byte key of the page, derived from its URL';
COMMENT ON COLUMN page_text.state IS
    'fetched, gone, moved or excluded; for a gone page, the texts are those of its last version';
COMMENT ON COLUMN page_text.version IS 'number of the newest version, counted from 1';
COMMENT ON COLUMN page_text.at IS 'when this version was first seen';
COMMENT ON COLUMN page_text.title IS 'title of the page';
COMMENT ON COLUMN page_text.language IS 'language that the page declares; empty if it declares none';
COMMENT ON COLUMN page_text.content_type IS 'media type that the server sent';
COMMENT ON COLUMN page_text.content IS
    'what a reader would call the page, for search, reading and language models: without menus, sidebars and related links';
COMMENT ON COLUMN page_text.confidence IS
    'how certain the choice of the content is, 0 to 1; where it is low, the content is more of the text';
COMMENT ON COLUMN page_text.text IS
    'text whose changes are reported, for comparing and monitoring: everything but elements marked as navigation';
COMMENT ON COLUMN page_text.metadata IS
    'what the page says about itself: author, published, modified, description, site, image, type, and json_ld';
