"""How fast a domain's change rates drift is learnt from its own looks."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

COLUMN = "ALTER TABLE domain_state ADD drift DOUBLE PRECISION[] NOT NULL DEFAULT '{}'"


def upgrade() -> None:
    op.execute(COLUMN)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
