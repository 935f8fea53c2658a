"""The feed tells of pages that may not be fetched any more, so that whoever keeps a copy lets them go.

Pages that were refused before this migration are told when they are back; a copy that still has them is taken anew
(recrawl sync --anew).
"""

from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

EVENT = """
ALTER TABLE event DROP CONSTRAINT event_change;
ALTER TABLE event
    ADD CONSTRAINT event_change
    CHECK (change IN ('first', 'changed', 'moved', 'gone', 'refused', 'back', 'boilerplate', 'held_back', 'let_go',
                      'hint'));
"""
VIEW = """
COMMENT ON COLUMN report_change.change IS
    'first, changed, moved, gone, refused (it may not be fetched any more) or back; boilerplate: the site changed what
     stands on all its pages, told once; held_back, let_go: of new pages like this one; hint: somebody said that it has
     changed, nobody has looked yet';
"""


def upgrade() -> None:
    op.execute(EVENT)
    op.execute(VIEW)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
