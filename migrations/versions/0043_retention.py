"""What is kept of the past: settings, versions without text, packed visits, how far a feed goes."""

from alembic import op

from migrations.hash_partitions import create_hash_partitions

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

SETTINGS = """
ALTER TABLE domain
    ADD COLUMN keep_versions INTEGER NOT NULL DEFAULT 50,
    ADD COLUMN keep_daily_s DOUBLE PRECISION NOT NULL DEFAULT 7776000,
    ADD COLUMN keep_weekly_s DOUBLE PRECISION NOT NULL DEFAULT 63072000,
    ADD COLUMN keep_monthly_s DOUBLE PRECISION,
    ADD COLUMN keep_visits_s DOUBLE PRECISION DEFAULT 63072000,
    ADD COLUMN keep_changes_s DOUBLE PRECISION DEFAULT 63072000,
    ADD COLUMN quota BIGINT,
    ADD CONSTRAINT domain_retention CHECK (
        keep_versions >= 1 AND keep_daily_s > 0 AND keep_weekly_s > 0 AND keep_monthly_s > 0
        AND keep_visits_s > 0 AND keep_changes_s > 0 AND quota >= 0);
ALTER TABLE domain_state
    ADD COLUMN first_event BIGINT NOT NULL DEFAULT 1,
    ADD COLUMN forgotten_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN forgotten_places BIGINT NOT NULL DEFAULT 0;
ALTER TABLE snapshot ADD COLUMN is_kept BOOLEAN NOT NULL DEFAULT true;
CREATE INDEX snapshot_body ON snapshot (domain_id, body_digest) WHERE is_kept;

CREATE TABLE feed_reader (
    name TEXT NOT NULL,
    domain_id BIGINT REFERENCES domain (id) ON DELETE CASCADE,
    position BIGINT NOT NULL DEFAULT 0,
    moved_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (name),
    CONSTRAINT feed_reader_position CHECK (position >= 0)
);
"""
# Every column of a visit but its domain and its key, in the order of the table: each is an array of a pack.
COLUMNS = {
    "at": "TIMESTAMPTZ",
    "answer": "TEXT",
    "status": "SMALLINT",
    "reason": "TEXT",
    "change": "TEXT",
    "rung": "TEXT",
    "distance_bits": "SMALLINT",
    "conditional": "BOOLEAN",
    "requests": "SMALLINT",
    "received_bytes": "INTEGER",
    "saved_bytes": "INTEGER",
    "elapsed_ms": "INTEGER",
    "cash": "BIGINT",
    "expected": "DOUBLE PRECISION",
    "due_at": "TIMESTAMPTZ",
    "price": "DOUBLE PRECISION",
    "audit": "BOOLEAN",
    "parts": "TEXT",
    "amount": "DOUBLE PRECISION",
    "rendering": "TEXT",
    "added_words": "INTEGER",
    "added_links": "INTEGER",
}
ARRAYS = ",\n    ".join(f"{name} {kind}[] NOT NULL" for name, kind in COLUMNS.items())
NAMES = ", ".join(COLUMNS)
UNPACKED = f"""
       CROSS JOIN LATERAL unnest({", ".join(f"p.{name}" for name in COLUMNS)})
                  WITH ORDINALITY AS x({NAMES}, place)
"""
OF_VISIT = f"domain_id, key, {NAMES}"
OF_PACK = ", ".join(
    ["p.domain_id", "substring(p.keys FROM (16 * x.place - 15)::int FOR 16) AS key", *(f"x.{name}" for name in COLUMNS)]
)
PACKS = f"""
CREATE TABLE visit_pack (
    domain_id BIGINT NOT NULL,
    bits SMALLINT NOT NULL,
    bucket INTEGER NOT NULL,
    id UUID NOT NULL DEFAULT gen_random_uuid(),
    since TIMESTAMPTZ NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    visits INTEGER NOT NULL DEFAULT 0,
    keys BYTEA NOT NULL,
    {ARRAYS},
    PRIMARY KEY (domain_id, bits, bucket, id),
    CONSTRAINT visit_pack_whole CHECK (visits >= 1 AND octet_length(keys) = 16 * visits AND cardinality(at) = visits),
    CONSTRAINT visit_pack_bucket CHECK (bits BETWEEN 0 AND 16 AND bucket >= 0 AND bucket < 1 << bits)
) PARTITION BY HASH (domain_id);
CREATE INDEX visit_pack_until ON visit_pack (domain_id, until);

CREATE FUNCTION visit_bucket(page bytea, bits int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT ((get_byte(page, 0) << 8) | get_byte(page, 1)) >> (16 - bits) $$;

CREATE FUNCTION old_visits_of(domain bigint, page bytea) RETURNS SETOF visit LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT v.* FROM (
    SELECT {OF_PACK}
      FROM generate_series(0, 16, 2) b
      JOIN visit_pack p ON p.domain_id = old_visits_of.domain AND p.bits = b
                       AND p.bucket = visit_bucket(old_visits_of.page, b)
      {UNPACKED}) v
 WHERE v.key = old_visits_of.page
$$;

CREATE FUNCTION old_looks_of(domain bigint, page bytea) RETURNS TABLE (at timestamptz, change text)
LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT x.at, x.change
  FROM generate_series(0, 16, 2) b
  JOIN visit_pack p ON p.domain_id = old_looks_of.domain AND p.bits = b
                   AND p.bucket = visit_bucket(old_looks_of.page, b)
 CROSS JOIN LATERAL unnest(p.at, p.change) WITH ORDINALITY AS x(at, change, place)
 WHERE substring(p.keys FROM (16 * x.place - 15)::int FOR 16) = old_looks_of.page
$$;

CREATE FUNCTION visit_status(domain bigint, page bytea, instant timestamptz) RETURNS smallint
LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT coalesce(
    (SELECT v.status FROM visit v
      WHERE v.domain_id = visit_status.domain AND v.key = visit_status.page AND v.at = visit_status.instant),
    (SELECT p.status[x.place]
       FROM generate_series(0, 16, 2) b
       JOIN visit_pack p ON p.domain_id = visit_status.domain AND p.bits = b
                        AND p.bucket = visit_bucket(visit_status.page, b)
                        AND visit_status.instant BETWEEN p.since AND p.until
      CROSS JOIN LATERAL unnest(p.at) WITH ORDINALITY AS x(at, place)
      WHERE x.at = visit_status.instant
        AND substring(p.keys FROM (16 * x.place - 15)::int FOR 16) = visit_status.page
      LIMIT 1))
$$;

CREATE FUNCTION visits_of(domain bigint, page bytea) RETURNS SETOF visit LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT {OF_VISIT} FROM visit v WHERE v.domain_id = visits_of.domain AND v.key = visits_of.page
 UNION ALL
SELECT {OF_VISIT} FROM old_visits_of(visits_of.domain, visits_of.page)
$$;

CREATE FUNCTION visits_between(domain bigint, first timestamptz, last timestamptz)
RETURNS SETOF visit LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT {OF_VISIT} FROM visit v WHERE v.domain_id = visits_between.domain AND v.at BETWEEN first AND last
 UNION ALL
SELECT v.* FROM (SELECT {OF_PACK}
                   FROM visit_pack p {UNPACKED}
                  WHERE p.domain_id = visits_between.domain AND p.until >= first AND p.since <= last) v
 WHERE v.at BETWEEN first AND last
$$;

CREATE VIEW every_visit AS
SELECT {OF_VISIT} FROM visit
 UNION ALL
SELECT {OF_PACK} FROM visit_pack p {UNPACKED};
"""  # noqa: S608  only our own columns are put in
VIEWS = """
CREATE OR REPLACE VIEW report_traffic AS
SELECT d.id AS domain_id, d.authority AS domain, v.hour, v.looks, v.requests, v.received_bytes, v.errors, v.latency_ms
  FROM domain d
  JOIN (SELECT domain_id, date_trunc('hour', at, 'UTC') AS hour,
               count(*) FILTER (WHERE requests > 0) AS looks,
               coalesce(sum(requests), 0) AS requests,
               coalesce(sum(received_bytes::bigint), 0)::bigint AS received_bytes,
               count(*) FILTER (WHERE requests > 0 AND (answer = 'unreached' OR status = 429 OR status >= 500))
                   AS errors,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY elapsed_ms)
                   FILTER (WHERE requests > 0 AND answer <> 'unreached') AS latency_ms
          FROM every_visit GROUP BY 1, 2) v ON v.domain_id = d.id;

CREATE OR REPLACE VIEW page_versions AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       p.key,
       v.number AS version,
       v.at,
       (SELECT n.at FROM snapshot n
         WHERE n.domain_id = d.id AND n.key = v.key AND n.number > v.number ORDER BY n.number LIMIT 1) AS until,
       e.change,
       e.parts,
       e.amount,
       v.title,
       v.language,
       v.content_type,
       octet_length(v.text) AS text_bytes,
       c.body_bytes,
       v.is_rendered,
       v.is_kept
  FROM domain d
  JOIN page p ON p.domain_id = d.id
  JOIN snapshot v ON v.domain_id = d.id AND v.key = p.key
  LEFT JOIN LATERAL (SELECT o.change, o.parts, o.amount FROM event o
                      WHERE o.domain_id = d.id AND o.key = v.key AND o.version = v.number AND o.at = v.at
                      ORDER BY o.number LIMIT 1) e ON true
  LEFT JOIN content c ON c.domain_id = d.id AND c.digest = v.body_digest AND v.is_kept;
COMMENT ON COLUMN page_versions.is_kept IS 'whether its text is kept; of others only this row is (recrawl prune)';

COMMENT ON VIEW every_visit IS 'Every look that is remembered: of table visit, and of table visit_pack.';
CREATE VIEW report_feed AS
SELECT d.id AS domain_id, d.authority AS domain, s.forgotten_until, s.next_event - s.first_event AS changes
  FROM domain d JOIN domain_state s ON s.domain_id = d.id;
COMMENT ON VIEW report_feed IS 'How far the change feed of each domain goes back.';
COMMENT ON COLUMN report_feed.domain_id IS 'the domain, by number';
COMMENT ON COLUMN report_feed.domain IS 'the domain, by name';
COMMENT ON COLUMN report_feed.forgotten_until IS
    'the last position of its changes that are not kept any more; a lower cursor has missed some';
COMMENT ON COLUMN report_feed.changes IS 'how many of its changes are kept';
"""


# Every column of every_visit is one of the table visit, by the same name.
COMMENTS = "\n".join(
    f"COMMENT ON COLUMN every_visit.{name} IS 'as in table visit';" for name in ("domain_id", "key", *COLUMNS)
)


def upgrade() -> None:
    op.execute(SETTINGS)
    op.execute(PACKS)
    create_hash_partitions("visit_pack")
    op.execute(VIEWS)
    op.execute(COMMENTS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
