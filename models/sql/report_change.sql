CREATE VIEW report_change AS
SELECT f.position,
       f.domain_id,
       d.authority AS domain,
       e.at,
       e.url,
       e.change,
       e.version,
       e.distance_bits,
       f.appended_at,
       e.parts,
       e.pages,
       e.magnitude,
       e.blocks,
       e.source,
       e.reason,
       e.value
  FROM feed f
  JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
  JOIN domain d ON d.id = f.domain_id;
COMMENT ON VIEW report_change IS
    'The change feed: every change once, in one order. To continue, select rows after the highest position you have '
    'seen.';
COMMENT ON COLUMN report_change.position IS 'sequence number in the feed, counted from 1; the cursor';
COMMENT ON COLUMN report_change.domain_id IS 'number of the domain';
COMMENT ON COLUMN report_change.domain IS 'name of the domain: host, and port unless it is the default';
COMMENT ON COLUMN report_change.at IS 'when the change was found';
COMMENT ON COLUMN report_change.url IS
    'the page; for a change of the site template, the root of the domain; for deferred and resumed, one of the pages';
COMMENT ON COLUMN report_change.change IS
    'added, changed, moved, gone, excluded (since then, by robots.txt or the scope) or restored; template: the site changed '
    'its boilerplate, reported once; deferred, resumed: unfetched pages like this one are deferred or resumed (crawler '
    'trap); hint: a change signal says that the page has changed, which no visit has checked yet; '
    'failing: the last visits of the page failed, or with version 0, the whole domain is suspended; recovered: it responds again; '
    'value: a value that a rule reads from the page differs, as in report_value';
COMMENT ON COLUMN report_change.version IS
    'number of the newest version of the page after the change; 0 for template, deferred and resumed, and for '
    'failing and recovered of a whole domain';
COMMENT ON COLUMN report_change.distance_bits IS
    'SimHash distance between the two versions of the page''s own text: how many of 64 bits differ; null without text';
COMMENT ON COLUMN report_change.appended_at IS 'when the change was appended to the feed';
COMMENT ON COLUMN report_change.parts IS
    'what changed: text, link, image, title, meta; empty if the blocks were not compared';
COMMENT ON COLUMN report_change.pages IS
    'for a change of the template, the number of pages it was seen on; otherwise null';
COMMENT ON COLUMN report_change.magnitude IS
    'change magnitude: share of the page''s text that changed, 0 to 1; null if unknown or without a content change';
COMMENT ON COLUMN report_change.blocks IS
    'the first 50 blocks that changed, as [part, before, after]; null if the blocks were not compared';
COMMENT ON COLUMN report_change.reason IS 'for failing, why the last visit failed; otherwise null';
COMMENT ON COLUMN report_change.value IS
    'for a value: its name and unit, and the numbers before (was) and after (now); otherwise null';
COMMENT ON COLUMN report_change.source IS
    'for a hint, its source: feed, push, or the name given with the hint; otherwise null';
