"""What a domain is shown, secrets by reference, and the way to it; its traffic by the hour."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

KEYS = """
ALTER TABLE domain
    ADD COLUMN headers text[] NOT NULL DEFAULT '{}',
    ADD COLUMN auth text NOT NULL DEFAULT '',
    ADD COLUMN login text NOT NULL DEFAULT '',
    ADD COLUMN cookies boolean NOT NULL DEFAULT false,
    ADD COLUMN proxy text NOT NULL DEFAULT '',
    ADD COLUMN ca_file text NOT NULL DEFAULT '',
    ADD COLUMN insecure_tls boolean NOT NULL DEFAULT false
"""

TRAFFIC = """
CREATE VIEW report_traffic AS
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
          FROM visit GROUP BY 1, 2) v ON v.domain_id = d.id;
"""
MEANINGS = {
    None: "The traffic of domains by the hour, from their visits.",
    "domain_id": "the domain, by number",
    "domain": "the domain, by name",
    "hour": "when the hour began, in knowledge time",
    "looks": "looks for which anything was sent",
    "requests": "requests of these looks; robots.txt and logins are not among them",
    "received_bytes": "bytes that came for them",
    "errors": "looks without an answer, or with status 429 or 5xx",
    "latency_ms": "the median time of an answer, in milliseconds",
}


def upgrade() -> None:
    op.execute(KEYS)
    op.execute(TRAFFIC)
    for column, meaning in MEANINGS.items():
        what = "VIEW report_traffic" if column is None else f"COLUMN report_traffic.{column}"
        op.execute(f"COMMENT ON {what} IS '{meaning}'")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
