"""What of a page is compared, as its user says: places to ignore and to watch, by rule."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE rule
    ADD ignore TEXT[] NOT NULL DEFAULT '{}',
    ADD watch TEXT[] NOT NULL DEFAULT '{}',
    ADD ignore_text TEXT[] NOT NULL DEFAULT '{}';
"""


def upgrade() -> None:
    op.execute(COLUMNS)


def downgrade() -> None:
    op.execute("ALTER TABLE rule DROP ignore, DROP watch, DROP ignore_text")
