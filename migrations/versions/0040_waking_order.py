"""domain_state: its index by time of waking has the order of claims, also where many wake at the same time."""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP INDEX domain_state_wake")
    op.execute("CREATE INDEX domain_state_wake ON domain_state (wake_at, domain_id)")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
