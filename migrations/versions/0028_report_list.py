"""A view of sitemaps and feeds: what each is, and what it has brought."""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

VIEW = """
CREATE VIEW report_list AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       l.kind,
       l.found_by,
       f.state,
       l.entries,
       l.others,
       l.refused,
       l.reads,
       l.told,
       l.new_pages,
       l.hints,
       l.hints_checked,
       l.hints_true,
       l.worth,
       l.finding,
       p.last_look_at,
       f.due_at
  FROM url_list l
  JOIN domain d ON d.id = l.domain_id
  JOIN page p ON p.domain_id = l.domain_id AND p.key = l.key
  JOIN frontier f ON f.domain_id = l.domain_id AND f.key = l.key;
"""
MEANINGS = {
    None: "Sitemaps, sitemap indexes, feeds and text files of URLs: what each is, and what it has brought.",
    "domain_id": "Number of the domain.",
    "domain": "Authority of the domain.",
    "url": "Address of the list.",
    "kind": "sitemap, index, feed or text; empty for one that was never read.",
    "found_by": "robots: robots.txt names it; usual: a usual place; page: the head of a page; list: another list; "
    "body: a page that turned out to be one.",
    "state": "State of the page: new, known, gone, moved or refused.",
    "entries": "URLs that it named when it was read last.",
    "others": "Of these, on other hosts: they do not count.",
    "refused": "Of these, may not be fetched: by robots.txt or by the scope of the domain.",
    "reads": "Looks in which it was read.",
    "told": "Looks after the first that told of new pages or of changes.",
    "new_pages": "Pages that it made known.",
    "hints": "Changes of known pages that its dates told of.",
    "hints_checked": "Of these, tested by a look since.",
    "hints_true": "Of these, true.",
    "worth": "What a look that tells anything is worth, in pages of mean importance.",
    "finding": "Why it was not read to its end, or empty.",
    "last_look_at": "Last look.",
    "due_at": "Next look; null while it is new.",
}


def upgrade() -> None:
    op.execute(VIEW)
    for column, meaning in MEANINGS.items():
        what = "VIEW report_list" if column is None else f"COLUMN report_list.{column}"
        op.execute(f"COMMENT ON {what} IS '{meaning}'")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
