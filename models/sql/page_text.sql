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
       v.text
  FROM domain d
  JOIN page p ON p.domain_id = d.id
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  JOIN snapshot v ON v.domain_id = d.id AND v.key = p.key AND v.number = p.version;
COMMENT ON VIEW page_text IS
    'The newest text of every page. Say domain_id = ... rather than domain = ...: one partition is read.';
COMMENT ON COLUMN page_text.domain_id IS 'the domain, by number';
COMMENT ON COLUMN page_text.domain IS 'the domain, by name';
COMMENT ON COLUMN page_text.url IS 'the page''s one spelling';
COMMENT ON COLUMN page_text.key IS 'the page, by 16 bytes that follow from its URL';
COMMENT ON COLUMN page_text.state IS 'known, gone, moved or refused: of a page that is gone this is what it said last';
COMMENT ON COLUMN page_text.version IS 'number of its newest version, counted from 1';
COMMENT ON COLUMN page_text.at IS 'when that version was first seen';
COMMENT ON COLUMN page_text.title IS 'its title';
COMMENT ON COLUMN page_text.language IS 'the language that it says it is in; empty if it says none';
COMMENT ON COLUMN page_text.content_type IS 'the media type that its server gave';
COMMENT ON COLUMN page_text.text IS 'its main text: one block in a line, without what frames the content';
