"""Priors by kind of site, from which new domains begin."""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

KINDS = """
CREATE TABLE kind_prior (
    kind text PRIMARY KEY,
    a float8 NOT NULL,
    b float8 NOT NULL,
    pages bigint NOT NULL,
    domains integer NOT NULL,
    planned_at timestamptz NOT NULL,
    CONSTRAINT kind_prior_gamma CHECK (a > 0 AND b > 0)
);
"""


def upgrade() -> None:
    op.execute(KINDS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
