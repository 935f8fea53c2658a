"""What the kinds of report_trust mean, now that a HEAD may be asked by length and date."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

KIND = """
COMMENT ON COLUMN report_trust.kind IS
    'etag, last_modified; length: of the body; date: Last-Modified as an instant; condition: that a word which still
holds is answered by 304; head: that a HEAD tells what the body would. By the last two, lies and flaps: in vain';
"""


def upgrade() -> None:
    op.execute(KIND)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
