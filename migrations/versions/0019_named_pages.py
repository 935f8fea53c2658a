"""Pages that their user names by their URL come before all others."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

NAMED = """
ALTER TABLE frontier DROP CONSTRAINT frontier_wanted,
    ADD CONSTRAINT frontier_wanted CHECK (wanted BETWEEN 0 AND 4);
CREATE INDEX frontier_named ON frontier (domain_id, key) WHERE wanted = 4;
"""


def upgrade() -> None:
    op.execute(NAMED)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
