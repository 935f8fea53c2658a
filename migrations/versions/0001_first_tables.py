"""The first tables: domains, pages and their economy, visits, snapshots, changes; partitioned from the start."""

from alembic import op

from migrations.hash_partitions import create_hash_partitions

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE domain (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    authority TEXT NOT NULL,
    scheme TEXT NOT NULL,
    state TEXT DEFAULT 'active' NOT NULL,
    registered_at TIMESTAMPTZ NOT NULL,
    seeds TEXT[] DEFAULT '{}' NOT NULL,
    weight DOUBLE PRECISION DEFAULT '1' NOT NULL,
    budget_per_day INTEGER,
    delay_s DOUBLE PRECISION,
    parallelism INTEGER,
    max_depth INTEGER,
    max_pages INTEGER,
    include TEXT[] DEFAULT '{}' NOT NULL,
    exclude TEXT[] DEFAULT '{}' NOT NULL,
    allow_private BOOLEAN DEFAULT 'false' NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT domain_scheme CHECK (scheme IN ('http', 'https')),
    CONSTRAINT domain_state_known CHECK (state IN ('active', 'paused')),
    CONSTRAINT domain_weight_positive CHECK (weight > 0),
    CONSTRAINT domain_budget CHECK (budget_per_day >= 0),
    CONSTRAINT domain_delay CHECK (delay_s >= 0),
    CONSTRAINT domain_parallelism CHECK (parallelism BETWEEN 1 AND 256),
    CONSTRAINT domain_depth CHECK (max_depth >= 0),
    CONSTRAINT domain_pages CHECK (max_pages >= 1),
    UNIQUE (authority)
);

CREATE TABLE domain_alias (
    authority TEXT NOT NULL,
    domain_id BIGINT NOT NULL,
    PRIMARY KEY (authority),
    FOREIGN KEY(domain_id) REFERENCES domain (id) ON DELETE CASCADE
);

CREATE TABLE domain_state (
    domain_id BIGINT NOT NULL,
    lease_token UUID,
    leased_until TIMESTAMPTZ,
    holder TEXT,
    next_request_at TIMESTAMPTZ,
    delay_s DOUBLE PRECISION DEFAULT '0' NOT NULL,
    addresses TEXT[] DEFAULT '{}' NOT NULL,
    wake_at TIMESTAMPTZ,
    resume_at TIMESTAMPTZ,
    resume_reason TEXT DEFAULT '' NOT NULL,
    refusals INTEGER DEFAULT '0' NOT NULL,
    last_visit_at TIMESTAMPTZ,
    coins BIGINT NOT NULL,
    reserve BIGINT DEFAULT '0' NOT NULL,
    dormant BIGINT NOT NULL,
    clock DOUBLE PRECISION DEFAULT '0' NOT NULL,
    newcomers_cash DOUBLE PRECISION DEFAULT '0' NOT NULL,
    newcomers_clock DOUBLE PRECISION DEFAULT '0' NOT NULL,
    tracked BIGINT DEFAULT '0' NOT NULL,
    budget_day DATE,
    spent_requests INTEGER DEFAULT '0' NOT NULL,
    spent_bytes BIGINT DEFAULT '0' NOT NULL,
    next_event BIGINT DEFAULT '1' NOT NULL,
    stamped_event BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (domain_id),
    CONSTRAINT domain_state_reserve CHECK (reserve >= 0 AND dormant >= 0),
    CONSTRAINT domain_state_lease_whole CHECK ((lease_token IS NULL) = (leased_until IS NULL)),
    FOREIGN KEY(domain_id) REFERENCES domain (id) ON DELETE CASCADE
);

CREATE INDEX domain_state_wake ON domain_state (wake_at);

CREATE TABLE pool (
    domain_id BIGINT NOT NULL,
    pool SMALLINT NOT NULL,
    pages BIGINT DEFAULT '0' NOT NULL,
    dividend BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (domain_id, pool),
    CONSTRAINT pool_pages CHECK (pages >= 0),
    CONSTRAINT pool_known CHECK (pool BETWEEN 0 AND 3),
    FOREIGN KEY(domain_id) REFERENCES domain (id) ON DELETE CASCADE
);

CREATE TABLE robots (
    domain_id BIGINT NOT NULL,
    body BYTEA,
    outcome TEXT NOT NULL,
    fetched_at TIMESTAMPTZ NOT NULL,
    good_at TIMESTAMPTZ,
    due_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (domain_id),
    FOREIGN KEY(domain_id) REFERENCES domain (id) ON DELETE CASCADE
);

CREATE TABLE address_slot (
    address TEXT NOT NULL,
    domain_id BIGINT NOT NULL,
    lease_token UUID NOT NULL,
    held_until TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (address),
    FOREIGN KEY(domain_id) REFERENCES domain (id) ON DELETE CASCADE
);

CREATE TABLE inbox (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    domain_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    payload JSONB DEFAULT '{}' NOT NULL,
    arrived_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT inbox_kind CHECK (kind IN ('seed', 'refresh')),
    FOREIGN KEY(domain_id) REFERENCES domain (id) ON DELETE CASCADE
);

CREATE INDEX inbox_domain ON inbox (domain_id, id);

CREATE TABLE page (
    domain_id BIGINT NOT NULL,
    key BYTEA NOT NULL,
    url TEXT NOT NULL,
    first_seen_at TIMESTAMPTZ NOT NULL,
    etag TEXT,
    last_modified TEXT,
    received_bytes INTEGER DEFAULT '0' NOT NULL,
    belief_a DOUBLE PRECISION NOT NULL,
    belief_b DOUBLE PRECISION NOT NULL,
    status SMALLINT,
    reason TEXT DEFAULT '' NOT NULL,
    visits INTEGER DEFAULT '0' NOT NULL,
    changes INTEGER DEFAULT '0' NOT NULL,
    failures SMALLINT DEFAULT '0' NOT NULL,
    last_look_at TIMESTAMPTZ,
    last_good_at TIMESTAMPTZ,
    last_change_at TIMESTAMPTZ,
    moved_to BYTEA,
    version INTEGER DEFAULT '0' NOT NULL,
    body_digest BYTEA,
    text_digest BYTEA,
    main_digest BYTEA,
    shape_digest BYTEA,
    fingerprint BIGINT,
    PRIMARY KEY (domain_id, key),
    CONSTRAINT page_key CHECK (octet_length(key) = 16),
    CONSTRAINT page_url CHECK (octet_length(url) <= 8192),
    CONSTRAINT page_belief CHECK (belief_a > 0 AND belief_b > 0)
) PARTITION BY HASH (domain_id);

CREATE TABLE frontier (
    domain_id BIGINT NOT NULL,
    key BYTEA NOT NULL,
    state TEXT NOT NULL,
    rank SMALLINT DEFAULT '0' NOT NULL,
    depth SMALLINT DEFAULT '0' NOT NULL,
    due_at TIMESTAMPTZ,
    PRIMARY KEY (domain_id, key),
    CONSTRAINT frontier_state CHECK (state IN ('new', 'known', 'gone', 'moved', 'refused')),
    CONSTRAINT frontier_due CHECK (due_at IS NOT NULL OR state = 'new')
) PARTITION BY HASH (domain_id);

CREATE INDEX frontier_discovery ON frontier (domain_id, rank DESC, key) WHERE state = 'new';

CREATE INDEX frontier_due_order ON frontier (domain_id, due_at, key) WHERE state <> 'new';

CREATE TABLE cash (
    domain_id BIGINT NOT NULL,
    key BYTEA NOT NULL,
    pool SMALLINT NOT NULL,
    net BIGINT NOT NULL,
    history DOUBLE PRECISION DEFAULT '0' NOT NULL,
    clock DOUBLE PRECISION DEFAULT '0' NOT NULL,
    PRIMARY KEY (domain_id, key),
    CONSTRAINT cash_pool CHECK (pool BETWEEN 0 AND 3)
) PARTITION BY HASH (domain_id);

CREATE TABLE page_links (
    domain_id BIGINT NOT NULL,
    key BYTEA NOT NULL,
    targets BYTEA NOT NULL,
    PRIMARY KEY (domain_id, key),
    CONSTRAINT page_links_whole CHECK (octet_length(targets) % 16 = 0)
) PARTITION BY HASH (domain_id);

CREATE TABLE snapshot (
    domain_id BIGINT NOT NULL,
    key BYTEA NOT NULL,
    number INTEGER NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    title TEXT NOT NULL,
    language TEXT NOT NULL,
    content_type TEXT NOT NULL,
    text TEXT NOT NULL,
    body_digest BYTEA NOT NULL,
    text_digest BYTEA NOT NULL,
    main_digest BYTEA NOT NULL,
    fingerprint BIGINT,
    distance_bits SMALLINT,
    PRIMARY KEY (domain_id, key, number),
    CONSTRAINT snapshot_number CHECK (number >= 1)
) PARTITION BY HASH (domain_id);

CREATE TABLE content (
    domain_id BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    encoding TEXT NOT NULL,
    body_bytes INTEGER DEFAULT '0' NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (domain_id, digest),
    CONSTRAINT content_encoding CHECK (encoding IN ('identity', 'zstd'))
) PARTITION BY HASH (domain_id);

CREATE TABLE visit (
    domain_id BIGINT NOT NULL,
    key BYTEA NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    answer TEXT NOT NULL,
    status SMALLINT,
    reason TEXT DEFAULT '' NOT NULL,
    change TEXT NOT NULL,
    rung TEXT NOT NULL,
    distance_bits SMALLINT,
    conditional BOOLEAN NOT NULL,
    requests SMALLINT NOT NULL,
    received_bytes INTEGER DEFAULT '0' NOT NULL,
    saved_bytes INTEGER DEFAULT '0' NOT NULL,
    elapsed_ms INTEGER DEFAULT '0' NOT NULL,
    cash BIGINT DEFAULT '0' NOT NULL,
    expected DOUBLE PRECISION,
    due_at TIMESTAMPTZ,
    PRIMARY KEY (domain_id, key, at),
    CONSTRAINT visit_answer CHECK (answer IN ('fetched', 'not_modified', 'unreached')),
    CONSTRAINT visit_change
        CHECK (change IN ('first', 'same', 'cosmetic', 'changed', 'moved', 'gone', 'back', 'unknown')),
    CONSTRAINT visit_cash CHECK (cash >= 0)
) PARTITION BY RANGE (at);

CREATE TABLE event (
    domain_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    key BYTEA NOT NULL,
    url TEXT NOT NULL,
    change TEXT NOT NULL,
    version INTEGER DEFAULT '0' NOT NULL,
    distance_bits SMALLINT,
    PRIMARY KEY (domain_id, number),
    CONSTRAINT event_number CHECK (number >= 1),
    CONSTRAINT event_change CHECK (change IN ('first', 'changed', 'moved', 'gone', 'back'))
) PARTITION BY HASH (domain_id);

CREATE TABLE feed (
    position BIGINT NOT NULL,
    domain_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    appended_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (position),
    CONSTRAINT feed_once UNIQUE (domain_id, number)
);
"""

HASHED = ("page", "frontier", "cash", "page_links", "snapshot", "content", "event")

# Rows that every look rewrites need room on their own page for a HOT update.
FILL = {"page": 85, "frontier": 70, "cash": 70}
SMALL_AND_HOT = ("domain_state", "pool")


def upgrade() -> None:
    op.execute(TABLES)
    # "page" first: the other tables get as many partitions as it has.
    for table in HASHED:
        fill = f" WITH (fillfactor = {FILL[table]}, autovacuum_vacuum_scale_factor = 0.05)" if table in FILL else ""
        create_hash_partitions(table, storage=fill)
    op.execute("CREATE TABLE visit_default PARTITION OF visit DEFAULT")
    for table in SMALL_AND_HOT:
        op.execute(f"ALTER TABLE {table} SET (fillfactor = 50)")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
