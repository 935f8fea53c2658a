"""A page may be wanted since a list names it."""

from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None

WANTED = """
ALTER TABLE frontier DROP CONSTRAINT frontier_wanted, ADD CONSTRAINT frontier_wanted CHECK (wanted BETWEEN 0 AND 8);
"""


def upgrade() -> None:
    op.execute(WANTED)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
