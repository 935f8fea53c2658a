"""A page that was found by a redirect keeps how many redirects led to it, one after another."""

from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE page ADD COLUMN redirects smallint NOT NULL DEFAULT 0")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
