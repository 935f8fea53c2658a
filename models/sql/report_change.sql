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
       e.source
  FROM feed f
  JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
  JOIN domain d ON d.id = f.domain_id;
COMMENT ON VIEW report_change IS
    'The change feed: every change once, in one order. Read on from the highest position that you have seen.';
COMMENT ON COLUMN report_change.position IS 'place in the feed, counted from 1; the cursor';
COMMENT ON COLUMN report_change.domain_id IS 'the domain, by number';
COMMENT ON COLUMN report_change.domain IS 'the domain, by name';
COMMENT ON COLUMN report_change.at IS 'when the change was found';
COMMENT ON COLUMN report_change.url IS 'the page; for a change of the boilerplate, the root of its domain';
COMMENT ON COLUMN report_change.change IS
    'added, changed, moved, gone, excluded (it may not be fetched any more) or restored; template: the site changed what
     stands on all its pages, told once; deferred, resumed: of new pages like this one; hint: somebody said that it has
     changed, nobody has looked yet';
COMMENT ON COLUMN report_change.version IS 'of the snapshot that shows it; 0 for a change of the boilerplate';
COMMENT ON COLUMN report_change.distance_bits IS
    'SimHash distance of the two versions, of 64 bits, in the text of the page itself; null without text';
COMMENT ON COLUMN report_change.appended_at IS 'when it was put into the feed';
COMMENT ON COLUMN report_change.parts IS
    'what changed: text, link, image, title, meta; empty where the blocks were not compared';
COMMENT ON COLUMN report_change.pages IS
    'for a change of the boilerplate, on how many pages it had been seen; otherwise null';
COMMENT ON COLUMN report_change.magnitude IS
    'the part of the text of the page that changed, 0 to 1; null where nobody can tell, and of what is no change';
COMMENT ON COLUMN report_change.blocks IS
    'the first 50 blocks that changed, as [part, before, after]; null where the blocks were not compared';
COMMENT ON COLUMN report_change.source IS
    'of a hint, who gave it: feed, push, or the name that was given with it; otherwise null';
