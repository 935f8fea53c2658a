"""Learned change rates by groups, a price for each domain, rules, targets, budgets in bytes, audits and calibration."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

COLUMNS = """
-- A page keeps what its own looks have added to the prior of its group; together they are its belief.
ALTER TABLE page DROP CONSTRAINT page_belief;
ALTER TABLE page RENAME belief_a TO evidence_a;
ALTER TABLE page RENAME belief_b TO evidence_b;
ALTER TABLE page
    ALTER evidence_a SET DEFAULT 0,
    ALTER evidence_b SET DEFAULT 0,
    ADD prior_no SMALLINT NOT NULL DEFAULT 0;
UPDATE page SET evidence_a = greatest(evidence_a - 0.5, 0), evidence_b = greatest(evidence_b - 10, 0);
ALTER TABLE page ADD CONSTRAINT page_evidence CHECK (evidence_a >= 0 AND evidence_b >= 0);

CREATE TABLE prior (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    no SMALLINT NOT NULL,
    template TEXT NOT NULL,
    a DOUBLE PRECISION NOT NULL,
    b DOUBLE PRECISION NOT NULL,
    pages BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (domain_id, no),
    CONSTRAINT prior_template UNIQUE (domain_id, template),
    CONSTRAINT prior_gamma CHECK (a > 0 AND b > 0)
);
INSERT INTO prior (domain_id, no, template, a, b) SELECT id, 0, '*', 0.5, 10 FROM domain;

CREATE TABLE rule (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    no SMALLINT NOT NULL,
    pattern TEXT NOT NULL,
    least_s DOUBLE PRECISION,
    most_s DOUBLE PRECISION,
    weight DOUBLE PRECISION,
    once BOOLEAN NOT NULL DEFAULT false,
    max_pages INTEGER,
    pages BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (domain_id, no),
    CONSTRAINT rule_bounds CHECK (least_s > 0 AND most_s > 0 AND weight > 0 AND max_pages >= 0)
);

ALTER TABLE domain
    ADD bytes_per_day BIGINT,
    ADD target_freshness DOUBLE PRECISION,
    ADD target_age_s DOUBLE PRECISION,
    ADD CONSTRAINT domain_bytes CHECK (bytes_per_day >= 0),
    ADD CONSTRAINT domain_target CHECK (target_freshness > 0 AND target_freshness < 1 AND target_age_s > 0);

ALTER TABLE domain_plan
    ADD price_request DOUBLE PRECISION,
    ADD price_byte DOUBLE PRECISION NOT NULL DEFAULT 0,
    ADD longest_s DOUBLE PRECISION,
    ADD budget_per_day INTEGER,
    ADD trim DOUBLE PRECISION NOT NULL DEFAULT 1,
    ADD finding TEXT NOT NULL DEFAULT '',
    ADD CONSTRAINT domain_plan_price CHECK (price_request > 0 AND price_byte >= 0);

ALTER TABLE domain_state
    ADD spent_floor INTEGER NOT NULL DEFAULT 0,
    ADD activity_seen DOUBLE PRECISION NOT NULL DEFAULT 0,
    ADD activity_expected DOUBLE PRECISION NOT NULL DEFAULT 0,
    ADD activity_at TIMESTAMPTZ,
    ADD costs JSONB NOT NULL DEFAULT '{}',
    ADD modified_told INTEGER NOT NULL DEFAULT 0,
    ADD modified_lied INTEGER NOT NULL DEFAULT 0;

-- The ledger of all domains together: one row.
CREATE TABLE ledger (
    no SMALLINT NOT NULL PRIMARY KEY,
    day DATE NOT NULL,
    spent_requests BIGINT NOT NULL,
    spent_bytes BIGINT NOT NULL,
    CONSTRAINT ledger_one CHECK (no = 1)
);
INSERT INTO ledger VALUES (1, '1970-01-01', 0, 0);

ALTER TABLE visit
    ADD price DOUBLE PRECISION,
    ADD audit BOOLEAN NOT NULL DEFAULT false;

CREATE TABLE calibration (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    day DATE NOT NULL,
    audit BOOLEAN NOT NULL,
    looks BIGINT NOT NULL,
    expected DOUBLE PRECISION NOT NULL,
    found BIGINT NOT NULL,
    variance DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (domain_id, day, audit)
);

ALTER TABLE inbox DROP CONSTRAINT inbox_kind,
    ADD CONSTRAINT inbox_kind CHECK (kind IN ('seed', 'refresh', 'reorder', 'audit', 'reprice'));
ALTER TABLE frontier
    ADD wanted SMALLINT NOT NULL DEFAULT 0,
    ADD CONSTRAINT frontier_wanted CHECK (wanted BETWEEN 0 AND 2);
"""
VIEWS = """
CREATE OR REPLACE VIEW report_page AS
SELECT x.domain_id, x.domain, x.url, x.state,
       CASE WHEN x.discovery_order = 'mixed' THEN (1 - x.url_share) * x.popularity + x.url_share * x.url_score
            ELSE x.popularity END AS importance,
       x.popularity, x.url_score, x.favoured, x.freshness, x.changes_per_day, x.version, x.due_at, x.depth,
       x.first_seen_at, x.last_look_at, x.last_good_at, x.last_change_at, x.looks, x.changes, x.failures, x.status,
       x.reason
  FROM (
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.discovery_order,
       d.url_share,
       p.url,
       f.state,
       page_importance(c.history, c.net + q.dividend, s.coins - s.dormant, c.clock, s.clock, n.pages) AS popularity,
       f.url_score,
       f.favoured,
       CASE WHEN f.state = 'known' AND p.version > 0
            THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                                greatest(now(), s.last_visit_at) - p.last_good_at) END AS freshness,
       (g.a + p.evidence_a) / (g.b + p.evidence_b) AS changes_per_day,
       p.version,
       f.due_at,
       f.depth,
       p.first_seen_at,
       p.last_look_at,
       p.last_good_at,
       p.last_change_at,
       p.visits AS looks,
       p.changes,
       p.failures,
       p.status,
       p.reason
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  JOIN (SELECT domain_id, sum(pages)::float8 AS pages FROM pool GROUP BY domain_id) n ON n.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;

CREATE VIEW report_calibration AS
SELECT k.domain_id, d.authority AS domain, k.day, k.audit, k.looks, k.expected / k.looks AS expected_change,
       k.found::float8 / k.looks AS found_change,
       (k.found - k.expected) / nullif(sqrt(k.variance), 0) AS deviations
  FROM calibration k JOIN domain d ON d.id = k.domain_id
 WHERE k.looks > 0;
"""
MEANINGS = {
    None: "How well the chances of change that were given before looks agree with what the looks found, by day.",
    "domain_id": "the domain, by number",
    "domain": "the domain, by name",
    "day": "UTC day of the looks",
    "audit": "true: looks at a random sample, which tell of the freshness report; false: all the others",
    "looks": "looks that told changed from same",
    "expected_change": "the mean chance that was given for a change",
    "found_change": "the share that had changed",
    "deviations": "by how many standard deviations more changes were found than expected; beyond 3 something is off",
}


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(VIEWS)
    for column, meaning in MEANINGS.items():
        what = "VIEW report_calibration" if column is None else f"COLUMN report_calibration.{column}"
        op.execute(f"COMMENT ON {what} IS '{meaning}'")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
