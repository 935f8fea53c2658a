"""domain_source: records count true signals by how fast their pages change, and signals of longer ago."""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

RECORDS = """
UPDATE domain_source
   SET record = jsonb_build_object('told', record -> 'true', 'usual', record -> 'arrived',
                                   'usual_page_days', record -> 'arrived_page_days') || record
 WHERE record ? 'true' AND record ? 'arrived'
"""


def upgrade() -> None:
    op.execute(RECORDS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
