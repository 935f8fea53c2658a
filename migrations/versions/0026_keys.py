"""What a domain is shown, secrets by reference, and the way to it; its traffic by the hour."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

KEYS = """
ALTER TABLE domain
    ADD COLUMN headers text[] NOT NULL DEFAULT '{}',
    ADD COLUMN auth text NOT NULL DEFAULT '',
    ADD COLUMN login text NOT NULL DEFAULT '',
    ADD COLUMN cookies boolean NOT NULL DEFAULT false,
    ADD COLUMN proxy text NOT NULL DEFAULT '',
    ADD COLUMN ca_file text NOT NULL DEFAULT '',
    ADD COLUMN insecure_tls boolean NOT NULL DEFAULT false
"""


def upgrade() -> None:
    op.execute(KEYS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
