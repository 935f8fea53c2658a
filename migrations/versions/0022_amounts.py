"""How much changes change, and by which rule pages are looked at again."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

AMOUNTS = """
ALTER TABLE domain
    ADD COLUMN value text NOT NULL DEFAULT 'amount',
    ADD COLUMN revisit text NOT NULL DEFAULT 'price',
    ADD CONSTRAINT domain_value CHECK (value IN ('amount', 'changes'));
ALTER TABLE page
    ADD COLUMN amount_total float8 NOT NULL DEFAULT 0,
    ADD COLUMN amount_changes float8 NOT NULL DEFAULT 0,
    ADD CONSTRAINT page_amounts CHECK (amount_total >= 0 AND amount_changes >= 0);
ALTER TABLE prior ADD COLUMN amount float8 NOT NULL DEFAULT 0.1;
ALTER TABLE domain_plan ADD COLUMN mean_amount float8 NOT NULL DEFAULT 0.1;
ALTER TABLE visit ADD COLUMN amount float8;
ALTER TABLE event ADD COLUMN amount float8;
CREATE OR REPLACE VIEW report_change AS
SELECT f.position,
       f.domain_id,
       d.authority AS domain,
       e.at,
       e.url,
       e.change,
       e.version,
       e.distance_bits,
       f.appended_at,
       e.parts,
       e.pages,
       e.amount
  FROM feed f
  JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
  JOIN domain d ON d.id = f.domain_id;
COMMENT ON COLUMN report_change.amount IS
    'the part of the text of the page that changed, 0 to 1; null where nobody can tell, and of what is no change';
COMMENT ON COLUMN report_change.distance_bits IS
    'SimHash distance of the two versions, of 64 bits, in the text of the page itself; null without text';
"""


def upgrade() -> None:
    op.execute(AMOUNTS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
