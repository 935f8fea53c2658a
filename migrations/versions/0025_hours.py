"""Calendar windows of a domain, the closed span that a claim found last, and pauses that follow its latency."""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE domain ADD COLUMN hours text NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE domain ADD COLUMN latency_factor float8 NOT NULL DEFAULT 2")
    op.execute("ALTER TABLE domain ADD CONSTRAINT domain_latency_factor CHECK (latency_factor >= 0)")
    op.execute("ALTER TABLE domain_state ADD COLUMN closed_from timestamptz, ADD COLUMN opens_at timestamptz")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
