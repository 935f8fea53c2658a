"""Sitemaps and feeds: which pages are URL lists, what they brought, and the dates that they gave other pages."""

from alembic import op

from migrations.hash_partitions import create_hash_partitions

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE url_list (
    domain_id bigint NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    key bytea NOT NULL,
    kind text NOT NULL DEFAULT '',
    found_by text NOT NULL,
    found_at timestamptz NOT NULL,
    worth float8 NOT NULL DEFAULT 1,
    entries integer NOT NULL DEFAULT 0,
    others integer NOT NULL DEFAULT 0,
    refused integer NOT NULL DEFAULT 0,
    unusable integer NOT NULL DEFAULT 0,
    finding text NOT NULL DEFAULT '',
    reads integer NOT NULL DEFAULT 0,
    told integer NOT NULL DEFAULT 0,
    new_pages bigint NOT NULL DEFAULT 0,
    hints bigint NOT NULL DEFAULT 0,
    hints_checked bigint NOT NULL DEFAULT 0,
    hints_true bigint NOT NULL DEFAULT 0,
    hints_expected float8 NOT NULL DEFAULT 0,
    PRIMARY KEY (domain_id, key),
    CONSTRAINT url_list_kind CHECK (kind IN ('', 'sitemap', 'index', 'feed', 'text')),
    CONSTRAINT url_list_found_by CHECK (found_by IN ('robots', 'usual', 'page', 'list', 'body')),
    CONSTRAINT url_list_worth CHECK (worth >= 0 AND hints_true <= hints_checked)
);

CREATE TABLE announced (
    domain_id bigint NOT NULL,
    key bytea NOT NULL,
    source text NOT NULL,
    at timestamptz NOT NULL,
    list_key bytea NOT NULL,
    is_open boolean NOT NULL DEFAULT false,
    PRIMARY KEY (domain_id, key, source),
    CONSTRAINT announced_source CHECK (source IN ('sitemap', 'feed'))
) PARTITION BY HASH (domain_id);
"""


def upgrade() -> None:
    op.execute(TABLES)
    create_hash_partitions("announced")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
