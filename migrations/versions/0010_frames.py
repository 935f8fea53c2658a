"""Edits of a whole site: an event of their own kind, with how many pages were met with them."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

EVENT = """
ALTER TABLE event
    ADD pages INTEGER,
    DROP CONSTRAINT event_change,
    ADD CONSTRAINT event_change CHECK (change IN ('first', 'changed', 'moved', 'gone', 'back', 'frame'));
"""
VIEW = """
CREATE OR REPLACE VIEW report_change AS
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
       e.pages
  FROM feed f
  JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
  JOIN domain d ON d.id = f.domain_id
"""
MEANINGS = {
    "url": "the page; of a frame, the root of its domain",
    "change": "first, changed, moved, gone or back; frame: the site changed what stands on all its pages, told once",
    "version": "of the snapshot that shows it; 0 for a frame",
    "parts": "what changed: text, link, image, title, meta; empty where it was not told piece by piece",
    "pages": "of a frame, how many pages had been met with it when it was told; otherwise null",
}


def upgrade() -> None:
    op.execute(EVENT)
    op.execute(VIEW)
    for column, meaning in MEANINGS.items():
        op.execute(f"COMMENT ON COLUMN report_change.{column} IS '{meaning}'")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
