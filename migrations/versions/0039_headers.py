"""The headers of the answer that brought a version, kept with it."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE snapshot ADD COLUMN headers text NOT NULL DEFAULT ''")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
