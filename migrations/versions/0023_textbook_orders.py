"""Depth first and breadth first as in the textbook, and the virtual page's share, the window, internal links."""

from alembic import op

revision = "0023"
down_revision = "0021"
branch_labels = None
depends_on = None

# Pages that wait get places by the clock at which they were found; from then on a link gives a page its place.
REPLACE = """
INSERT INTO inbox (domain_id, kind, arrived_at)
SELECT id, 'reorder', now() FROM domain WHERE discovery_order IN ('breadth', 'depth');
"""


def upgrade() -> None:
    op.execute(REPLACE)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
