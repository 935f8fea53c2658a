"""How lively a domain is these days is not learnt any more."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE domain_state DROP COLUMN activity_seen, DROP COLUMN activity_expected;
ALTER TABLE domain_state RENAME COLUMN activity_at TO drift_at;
"""


def upgrade() -> None:
    op.execute(COLUMNS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
