"""Requested pages are found by an index, and a domain's row says until when the pace of its budget lets it sleep."""

from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE domain_state ADD COLUMN paced_until TIMESTAMPTZ")
    op.execute("DROP INDEX frontier_named")
    op.execute("CREATE INDEX frontier_requested ON frontier (domain_id, wanted DESC, key) WHERE wanted IN (1, 4, 5)")
