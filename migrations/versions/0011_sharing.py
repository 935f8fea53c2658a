"""Pages whose main texts are the same share one schedule: whose it is stands at those that ride along."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COLUMN = """
ALTER TABLE page ADD leader BYTEA;

CREATE INDEX page_leader ON page (domain_id, leader) WHERE leader IS NOT NULL;

ALTER TABLE frontier DROP CONSTRAINT frontier_wanted,
    ADD CONSTRAINT frontier_wanted CHECK (wanted BETWEEN 0 AND 3);

ALTER TABLE inbox DROP CONSTRAINT inbox_kind,
    ADD CONSTRAINT inbox_kind CHECK (kind IN ('seed', 'refresh', 'reorder', 'audit', 'reprice', 'share'));
"""


def upgrade() -> None:
    op.execute(COLUMN)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
