"""Add the reason for a visit that a page is stored without what its scripts write (frontier.wanted = 5)."""

from alembic import op

revision = "0053"
down_revision = "0047"
branch_labels = None
depends_on = None

WANTED = """
ALTER TABLE frontier DROP CONSTRAINT frontier_wanted,
    ADD CONSTRAINT frontier_wanted CHECK (wanted BETWEEN 0 AND 5);
"""


def upgrade() -> None:
    op.execute(WANTED)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
