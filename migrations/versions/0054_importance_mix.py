"""Add the mix of importance and an equal share that makes up what a page weighs when visits are scheduled."""

from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None

MIX = """
ALTER TABLE domain ADD COLUMN importance_mix DOUBLE PRECISION NOT NULL DEFAULT 0.5,
    ADD CONSTRAINT domain_importance_mix CHECK (importance_mix BETWEEN 0 AND 1);
"""


def upgrade() -> None:
    op.execute(MIX)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
