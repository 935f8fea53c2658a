"""The feed tells hints, too, with the source of each; its view has the blocks that changed, for consumers by SQL."""

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

EVENT = """
ALTER TABLE event DROP CONSTRAINT event_change;
ALTER TABLE event
    ADD COLUMN source text,
    ADD CONSTRAINT event_change
    CHECK (change IN ('first', 'changed', 'moved', 'gone', 'back', 'boilerplate', 'held_back', 'let_go', 'hint'));
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
       e.pages,
       e.amount,
       e.blocks,
       e.source
  FROM feed f
  JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
  JOIN domain d ON d.id = f.domain_id;
COMMENT ON COLUMN report_change.change IS
    'first, changed, moved, gone or back; boilerplate: the site changed what stands on all its pages, told once;
     held_back, let_go: of new pages like this one; hint: somebody said that it has changed, nobody has looked yet';
COMMENT ON COLUMN report_change.blocks IS
    'the first 50 blocks that changed, as [part, before, after]; null where the blocks were not compared';
COMMENT ON COLUMN report_change.source IS
    'of a hint, who gave it: feed, push, or the name that was given with it; otherwise null';
"""


def upgrade() -> None:
    op.execute(EVENT)
    op.execute(VIEW)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
