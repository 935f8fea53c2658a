CREATE VIEW report_list AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       l.kind,
       l.found_by,
       f.state,
       l.entries,
       l.others,
       l.excluded,
       l.reads,
       l.informative_reads,
       l.new_pages,
       l.hints,
       l.hints_checked,
       l.hints_true,
       l.value,
       l.finding,
       p.last_visit_at,
       f.due_at
  FROM url_list l
  JOIN domain d ON d.id = l.domain_id
  JOIN page p ON p.domain_id = l.domain_id AND p.key = l.key
  JOIN frontier f ON f.domain_id = l.domain_id AND f.key = l.key;
COMMENT ON VIEW report_list IS
    'URL lists: sitemaps, sitemap indexes, feeds and text files of URLs, and what each has contributed.';
COMMENT ON COLUMN report_list.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_list.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_list.url IS 'URL of the list';
COMMENT ON COLUMN report_list.kind IS 'sitemap, index, feed or text; empty if it was never read';
COMMENT ON COLUMN report_list.found_by IS
    'how it was found: robots: named in robots.txt; usual: a common location; page: linked in the head of a page; '
    'list: named by another list; body: a page that turned out to be a list';
COMMENT ON COLUMN report_list.state IS 'unfetched, fetched, gone, moved or excluded';
COMMENT ON COLUMN report_list.entries IS 'URLs in the list at its last read';
COMMENT ON COLUMN report_list.others IS 'of these, URLs on other hosts; ignored';
COMMENT ON COLUMN report_list.excluded IS 'of these, URLs excluded by robots.txt or by the scope of the domain';
COMMENT ON COLUMN report_list.reads IS 'visits in which the list was read';
COMMENT ON COLUMN report_list.informative_reads IS
    'of these, reads that found new pages or changes; the first read does not count';
COMMENT ON COLUMN report_list.new_pages IS 'pages discovered through the list';
COMMENT ON COLUMN report_list.hints IS 'changes of fetched pages that the dates in the list signaled';
COMMENT ON COLUMN report_list.hints_checked IS 'of these, signals checked by a later visit';
COMMENT ON COLUMN report_list.hints_true IS 'of the checked signals, those that were true';
COMMENT ON COLUMN report_list.value IS 'value of an informative visit to the list, in pages of mean importance';
COMMENT ON COLUMN report_list.finding IS 'why the list was not read to its end; empty if it was';
COMMENT ON COLUMN report_list.last_visit_at IS 'last visit';
COMMENT ON COLUMN report_list.due_at IS 'next due time; null while unfetched';
