"""Pages that say nearly the same: fingerprints by page and by band, filled from the events, and a view."""

from alembic import op

from migrations.hash_partitions import create_hash_partitions

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE page_fingerprint (
    domain_id BIGINT NOT NULL,
    key BYTEA NOT NULL,
    fingerprint BIGINT NOT NULL,
    PRIMARY KEY (domain_id, key)
) PARTITION BY HASH (domain_id);

CREATE INDEX page_fingerprint_pages ON page_fingerprint (domain_id, fingerprint, key);

CREATE TABLE fingerprint_band (
    domain_id BIGINT NOT NULL,
    band INTEGER NOT NULL,
    fingerprint BIGINT NOT NULL,
    PRIMARY KEY (domain_id, band, fingerprint),
    CONSTRAINT fingerprint_band_quarters CHECK (band BETWEEN 0 AND 262143)
) PARTITION BY HASH (domain_id);

CREATE TABLE fingerprint_cursor (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    event BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (domain_id)
);
"""
HASHED = ("page_fingerprint", "fingerprint_band")

# The same arithmetic as crawler/core/change/near_duplicates.py; a test holds them together.
FUNCTIONS = """
CREATE FUNCTION fingerprint_band(fingerprint BIGINT, quarter INTEGER)
RETURNS INTEGER LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT quarter * 65536 + ((fingerprint >> (48 - 16 * quarter)) & 65535)::int
$$;

COMMENT ON FUNCTION fingerprint_band IS
    'One of the four bands of a fingerprint, by which table fingerprint_band finds it. quarter: 0 to 3.';

CREATE FUNCTION distance_bits(one BIGINT, other BIGINT)
RETURNS INTEGER LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT bit_count(int8send(one # other))::int
$$;

COMMENT ON FUNCTION distance_bits IS
    'In how many of 64 bits two fingerprints differ: 0 for equal main texts, about 32 for unrelated ones.';
"""
# Of pages with one and the same fingerprint the first stands for all, or a thousand of them would be a million pairs.
VIEW = """
CREATE VIEW report_duplicates AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       o.url AS near_url,
       h.pages AS near_pages,
       distance_bits(a.fingerprint, n.fingerprint) AS distance_bits
  FROM domain d
  JOIN page_fingerprint a ON a.domain_id = d.id
  JOIN page p ON p.domain_id = d.id AND p.key = a.key
  CROSS JOIN LATERAL (
       SELECT DISTINCT b.fingerprint
         FROM generate_series(0, 3) q
         JOIN fingerprint_band b ON b.domain_id = a.domain_id AND b.band = fingerprint_band(a.fingerprint, q)
        WHERE distance_bits(a.fingerprint, b.fingerprint) <= 3) n
  JOIN (SELECT DISTINCT ON (domain_id, fingerprint)
               domain_id, fingerprint, key, count(*) OVER (PARTITION BY domain_id, fingerprint) AS pages
          FROM page_fingerprint
         ORDER BY domain_id, fingerprint, key) h ON h.domain_id = d.id AND h.fingerprint = n.fingerprint
  JOIN page o ON o.domain_id = d.id AND o.key = h.key
 WHERE h.key <> a.key;
"""
MEANINGS = {
    None: (
        "Pages of a domain whose main texts are nearly the same, as of the last plan or recrawl duplicates. "
        "Say domain_id = ..., so that one partition is read."
    ),
    "domain_id": "the domain, by number",
    "domain": "the domain, by name",
    "url": "a page",
    "near_url": "another one whose main text is nearly the same; the first of those that have the very same text",
    "near_pages": "how many pages have that text",
    "distance_bits": "bits of 64 in which their fingerprints differ, 0 to 3",
}


def upgrade() -> None:
    op.execute(TABLES)
    for table in HASHED:
        create_hash_partitions(table)
    op.execute(FUNCTIONS)
    op.execute(VIEW)
    for column, meaning in MEANINGS.items():
        what = "VIEW report_duplicates" if column is None else f"COLUMN report_duplicates.{column}"
        op.execute(f"COMMENT ON {what} IS '{meaning}'")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
