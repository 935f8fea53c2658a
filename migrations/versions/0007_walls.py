"""What a domain shows in place of its pages: for paths that cannot exist, and on many of them at once."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE domain_walls (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    walls BYTEA NOT NULL,
    PRIMARY KEY (domain_id)
);
"""


def upgrade() -> None:
    op.execute(TABLE)


def downgrade() -> None:
    op.execute("DROP TABLE domain_walls")
