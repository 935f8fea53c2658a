"""A page's first 404 is kept until another look decides, and the look that confirms it comes before all others."""

from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

CONFIRM = """
ALTER TABLE page ADD COLUMN missing_since timestamptz;
ALTER TABLE frontier DROP CONSTRAINT frontier_wanted,
    ADD CONSTRAINT frontier_wanted CHECK (wanted BETWEEN 0 AND 6);
"""


def upgrade() -> None:
    op.execute(CONFIRM)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
