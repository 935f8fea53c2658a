"""What of a page is no news, learnt by domain, and of each change what it was that changed."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE domain_mask (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    mask BYTEA NOT NULL,
    PRIMARY KEY (domain_id)
);

ALTER TABLE visit ADD parts TEXT NOT NULL DEFAULT '';
ALTER TABLE event ADD parts TEXT NOT NULL DEFAULT '', ADD pieces JSONB;
"""


def upgrade() -> None:
    op.execute(TABLES)


def downgrade() -> None:
    op.execute("ALTER TABLE event DROP parts, DROP pieces; ALTER TABLE visit DROP parts; DROP TABLE domain_mask;")
