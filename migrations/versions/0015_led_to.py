"""A page remembers where its last redirect for good led it, in the domain or out of it."""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COLUMN = "ALTER TABLE page ADD led_to BYTEA"


def upgrade() -> None:
    op.execute(COLUMN)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
