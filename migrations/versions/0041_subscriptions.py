"""Subscriptions to changes, and what waits to be told to them."""

from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE subscription (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    target TEXT NOT NULL,
    secret TEXT NOT NULL DEFAULT '',
    seal TEXT NOT NULL DEFAULT '',
    allow_private BOOLEAN NOT NULL DEFAULT false,
    domain_id BIGINT REFERENCES domain (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL DEFAULT '',
    kinds TEXT[] NOT NULL DEFAULT '{}',
    place TEXT NOT NULL DEFAULT '',
    condition TEXT NOT NULL DEFAULT '',
    condition_text TEXT NOT NULL DEFAULT '',
    bound FLOAT8,
    digest TEXT NOT NULL DEFAULT '',
    quiet TEXT NOT NULL DEFAULT '',
    zone TEXT NOT NULL DEFAULT 'UTC',
    made_at TIMESTAMPTZ NOT NULL,
    position BIGINT NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    failing_since TIMESTAMPTZ,
    resume_at TIMESTAMPTZ,
    last_error TEXT NOT NULL DEFAULT '',
    delivered BIGINT NOT NULL DEFAULT 0,
    delivered_at TIMESTAMPTZ,
    PRIMARY KEY (id),
    CONSTRAINT subscription_condition CHECK (condition IN ('', 'appears', 'goes', 'below', 'above')),
    CONSTRAINT subscription_bound CHECK ((condition IN ('below', 'above')) = (bound IS NOT NULL)),
    CONSTRAINT subscription_counts CHECK (position >= 0 AND failures >= 0)
);

CREATE TABLE message (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    subscription_id BIGINT NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    token UUID NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'waiting',
    made_at TIMESTAMPTZ NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    next_try_at TIMESTAMPTZ NOT NULL,
    last_error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    CONSTRAINT message_state CHECK (state IN ('waiting', 'dead'))
);
CREATE INDEX message_next ON message (subscription_id, tries, id) WHERE state = 'waiting';

CREATE TABLE notice (
    subscription_id BIGINT NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    domain_id BIGINT NOT NULL,
    key BYTEA NOT NULL,
    due_at TIMESTAMPTZ NOT NULL,
    is_grouped BOOLEAN NOT NULL DEFAULT false,
    content JSONB NOT NULL,
    message_id BIGINT REFERENCES message (id) ON DELETE CASCADE,
    PRIMARY KEY (subscription_id, position)
);
CREATE INDEX notice_message ON notice (message_id, position);
CREATE INDEX notice_page ON notice (subscription_id, domain_id, key, message_id);
CREATE INDEX notice_due ON notice (subscription_id, due_at) WHERE message_id IS NULL;
"""


def upgrade() -> None:
    op.execute(TABLES)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
