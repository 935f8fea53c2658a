"""Pages in a browser: where they are wanted, what they brought, and which versions are of a rendered page."""

from alembic import op

revision = "0031"
down_revision = "0029"
branch_labels = None
depends_on = None

RENDERING = """
ALTER TABLE domain ADD COLUMN render text NOT NULL DEFAULT 'auto',
    ADD CONSTRAINT domain_render CHECK (render IN ('auto', 'always', 'never'));
ALTER TABLE rule ADD COLUMN render text,
    ADD CONSTRAINT rule_render CHECK (render IN ('auto', 'always', 'never'));
ALTER TABLE page ADD COLUMN is_rendered boolean NOT NULL DEFAULT false;
ALTER TABLE snapshot ADD COLUMN is_rendered boolean NOT NULL DEFAULT false;
ALTER TABLE visit ADD COLUMN rendering text NOT NULL DEFAULT '',
    ADD COLUMN added_words integer,
    ADD COLUMN added_links integer;
CREATE TABLE domain_renders (
    domain_id bigint PRIMARY KEY REFERENCES domain (id) ON DELETE CASCADE,
    memory bytea NOT NULL
);
"""


def upgrade() -> None:
    op.execute(RENDERING)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
