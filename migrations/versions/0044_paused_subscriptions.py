"""Subscriptions can be paused: since when, and up to which position of the feed changes are told all the same."""

from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

PAUSED = """
ALTER TABLE subscription
    ADD COLUMN paused_at TIMESTAMPTZ,
    ADD COLUMN pause_position BIGINT,
    ADD CONSTRAINT subscription_paused CHECK ((paused_at IS NULL) = (pause_position IS NULL));
"""


def upgrade() -> None:
    op.execute(PAUSED)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
