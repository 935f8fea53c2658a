"""Of a page that shares a schedule, whether its URL or its canonical link says that it is one with the other page."""

from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE page ADD COLUMN is_copy boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
