"""New pages are held back where pages of their template have brought nothing new."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

NOVELTY = """
CREATE TABLE domain_novelty (
    domain_id bigint PRIMARY KEY REFERENCES domain (id) ON DELETE CASCADE,
    memory bytea NOT NULL);
ALTER TABLE prior
    ADD COLUMN first_looks float8 NOT NULL DEFAULT 0,
    ADD COLUMN novelty float8 NOT NULL DEFAULT 0,
    ADD COLUMN held_until timestamptz,
    ADD COLUMN is_moving boolean NOT NULL DEFAULT false;
ALTER TABLE event DROP CONSTRAINT event_change;
ALTER TABLE event
    ADD CONSTRAINT event_change
    CHECK (change IN ('first', 'changed', 'moved', 'gone', 'back', 'boilerplate', 'held_back', 'let_go'));
ALTER TABLE frontier ADD COLUMN section smallint NOT NULL DEFAULT 0;
UPDATE frontier f SET section = p.prior_no FROM page p
 WHERE f.state = 'new' AND p.domain_id = f.domain_id AND p.key = f.key;
DROP INDEX frontier_discovery;
CREATE INDEX frontier_discovery ON frontier (domain_id, favoured, rank DESC, key)
 WHERE state = 'new' AND due_at IS NULL;
CREATE INDEX frontier_held_back ON frontier (domain_id, due_at, key)
 WHERE state = 'new' AND due_at IS NOT NULL;
"""


def upgrade() -> None:
    op.execute(NOVELTY)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
