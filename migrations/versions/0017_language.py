"""Domains may be asked in a language of their user's choice."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

COLUMN = "ALTER TABLE domain ADD language TEXT NOT NULL DEFAULT ''"


def upgrade() -> None:
    op.execute(COLUMN)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
