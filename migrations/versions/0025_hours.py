"""Calendar windows of a domain, and the closed span that a claim found last."""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE domain ADD COLUMN hours text NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE domain_state ADD COLUMN closed_from timestamptz, ADD COLUMN opens_at timestamptz")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
