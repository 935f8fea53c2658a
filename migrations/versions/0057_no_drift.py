"""How often change rates are drawn anew is not learned any more (decision 0052)."""

from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE domain_state DROP COLUMN drift, DROP COLUMN drift_at")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
