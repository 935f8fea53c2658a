"""How far a domain's validators can be believed, by group of pages; what Last-Modified tells goes there, too."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE domain_trust (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    prior_no SMALLINT NOT NULL,
    revisits INTEGER NOT NULL DEFAULT 0,
    challenges INTEGER NOT NULL DEFAULT 0,
    records JSONB NOT NULL DEFAULT '{}',
    PRIMARY KEY (domain_id, prior_no)
);

ALTER TABLE domain_state DROP modified_told, DROP modified_lied;  -- of each group now, and learnt anew
"""
# The same arithmetic as crawler/core/validators/trust.py; a test holds them together.
VIEW = """
CREATE VIEW report_trust AS
SELECT t.domain_id,
       d.authority AS domain,
       g.template,
       k.kind,
       CASE WHEN (k.record->>'lied')::float8 > 0.25 * ((k.record->>'told')::float8 + 1) THEN 'lies'
            WHEN (k.record->>'flapped')::float8 > 0.25 * ((k.record->>'same')::float8 + 1) THEN 'flaps'
            ELSE 'honest' END AS standing,
       (k.record->>'told')::float8 AS told,
       (k.record->>'lied')::float8 AS lied,
       (k.record->>'same')::float8 AS same,
       (k.record->>'flapped')::float8 AS flapped,
       t.challenges,
       t.revisits
  FROM domain_trust t
  JOIN domain d ON d.id = t.domain_id
  JOIN prior g ON g.domain_id = t.domain_id AND g.no = t.prior_no
  CROSS JOIN LATERAL jsonb_each(t.records) AS k(kind, record);
"""
MEANINGS = {
    None: "How far the words of servers about their versions can be believed, by group of pages and kind of word.",
    "domain_id": "the domain, by number",
    "domain": "the domain, by name",
    "template": "the URLs of the group; * for those of no known template",
    "kind": "etag, last_modified; length of the body, by which nothing is asked; date: Last-Modified as an instant",
    "standing": "honest; lies: says that a changed page is the same, and is not sent; flaps: the other way round",
    "told": "looks that found a change and what the word says of it; fading, the newest counts 1",
    "lied": "of them, those where it said that nothing had changed",
    "same": "looks that found the same body; fading, too",
    "flapped": "of them, those where the word was another one",
    "challenges": "full looks in spite of validators, at all pages of the group",
    "revisits": "looks at pages with validators since the last lie: the more, the fewer of them are challenges",
}


def upgrade() -> None:
    op.execute(TABLE)
    op.execute(VIEW)
    for column, meaning in MEANINGS.items():
        what = "VIEW report_trust" if column is None else f"COLUMN report_trust.{column}"
        op.execute(f"COMMENT ON {what} IS '{meaning}'")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
