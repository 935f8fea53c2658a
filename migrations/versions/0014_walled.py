"""A page remembers how often in a row it met one wall."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

COLUMN = "ALTER TABLE page ADD walled SMALLINT NOT NULL DEFAULT 0"


def upgrade() -> None:
    op.execute(COLUMN)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
