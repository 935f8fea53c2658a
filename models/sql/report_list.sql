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
    'Sitemaps, sitemap indexes, feeds and text files of URLs: what each is, and what it has brought.';
COMMENT ON COLUMN report_list.domain_id IS 'Number of the domain.';
COMMENT ON COLUMN report_list.domain IS 'Authority of the domain.';
COMMENT ON COLUMN report_list.url IS 'Address of the list.';
COMMENT ON COLUMN report_list.kind IS 'sitemap, index, feed or text; empty for one that was never read.';
COMMENT ON COLUMN report_list.found_by IS
    'robots: robots.txt names it; usual: a usual place; page: the head of a page; list: another list; body: a page that turned out to be one.';
COMMENT ON COLUMN report_list.state IS 'State of the page: new, known, gone, moved or refused.';
COMMENT ON COLUMN report_list.entries IS 'URLs that it named when it was read last.';
COMMENT ON COLUMN report_list.others IS 'Of these, on other hosts: they do not count.';
COMMENT ON COLUMN report_list.excluded IS 'Of these, may not be fetched: by robots.txt or by the scope of the domain.';
COMMENT ON COLUMN report_list.reads IS 'Looks in which it was read.';
COMMENT ON COLUMN report_list.informative_reads IS 'Looks after the first that told of new pages or of changes.';
COMMENT ON COLUMN report_list.new_pages IS 'Pages that it made known.';
COMMENT ON COLUMN report_list.hints IS 'Changes of known pages that its dates told of.';
COMMENT ON COLUMN report_list.hints_checked IS 'Of these, tested by a look since.';
COMMENT ON COLUMN report_list.hints_true IS 'Of these, true.';
COMMENT ON COLUMN report_list.value IS 'What a look that tells anything is worth, in pages of mean importance.';
COMMENT ON COLUMN report_list.finding IS 'Why it was not read to its end, or empty.';
COMMENT ON COLUMN report_list.last_visit_at IS 'Last look.';
COMMENT ON COLUMN report_list.due_at IS 'Next look; null while it is new.';
