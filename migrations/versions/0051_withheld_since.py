"""Add the instant since which a page's new content is withheld as a soft error's, so that this ends in two days."""

from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None

WITHHELD = """
ALTER TABLE page ADD COLUMN withheld_since TIMESTAMPTZ;
CREATE INDEX page_withheld ON page (domain_id) WHERE withheld_since IS NOT NULL;
UPDATE page SET withheld_since = last_look_at
 WHERE soft_errors > 0 AND failures > 0
   AND reason IN ('soft_404', 'login', 'shared_text', 'truncated', 'no_text', 'shrunk', 'replaced');
"""


def upgrade() -> None:
    op.execute(WITHHELD)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
