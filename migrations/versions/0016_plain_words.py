"""Tables, columns, reasons, rungs and events say what they mean in the field's words (CHANGELOG.md has the list)."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

RENAMES = """
ALTER TABLE domain_walls RENAME TO domain_soft_errors;
ALTER TABLE domain_soft_errors RENAME walls TO memory;
ALTER TABLE domain_soft_errors RENAME CONSTRAINT domain_walls_pkey TO domain_soft_errors_pkey;
ALTER TABLE domain_soft_errors RENAME CONSTRAINT domain_walls_domain_id_fkey TO domain_soft_errors_domain_id_fkey;
ALTER TABLE page RENAME walled TO soft_errors;
ALTER TABLE page_links RENAME elsewhere TO external_domains;
ALTER TABLE page_links RENAME elsewhere_links TO external_link_counts;
ALTER TABLE page_links RENAME CONSTRAINT page_links_elsewhere TO page_links_external;
ALTER TABLE domain_plan RENAME trim TO price_correction;
ALTER TABLE event RENAME pieces TO blocks;
ALTER VIEW report_domain RENAME left_alone_until TO hold_until;
ALTER VIEW report_domain RENAME left_alone_because TO hold_reason;
"""
# Of the tables of pages and visits only the rows that hold an old word are written.
REASONS = {
    "many_alike": "shared_text",
    "cut_off": "truncated",
    "moves_with_others": "bulk_redirect",
    "moves_onto_a_page": "redirect_to_existing",
}
RUNGS = {"frame": "boilerplate", "pieces": "blocks"}
EVENTS = """
ALTER TABLE event DROP CONSTRAINT event_change;
UPDATE event SET change = 'boilerplate' WHERE change = 'frame';
ALTER TABLE event
    ADD CONSTRAINT event_change CHECK (change IN ('first', 'changed', 'moved', 'gone', 'back', 'boilerplate'));
"""
TRUST = """
DROP VIEW report_trust;
ALTER TABLE domain_trust RENAME records TO stats;
UPDATE domain_trust t
   SET stats = (SELECT jsonb_object_agg(s.validator, jsonb_build_object(
                           'changes_seen', s.found -> 'told', 'missed', s.found -> 'lied',
                           'unchanged', s.found -> 'same', 'flapped', s.found -> 'flapped'))
                  FROM jsonb_each(t.stats) AS s(validator, found))
 WHERE t.stats <> '{}';
"""
# The same arithmetic as crawler/core/validators/trust.py; a test holds them together.
VIEW = """
CREATE VIEW report_trust AS
SELECT t.domain_id,
       d.authority AS domain,
       g.template,
       s.validator,
       CASE WHEN (s.found->>'missed')::float8 > 0.25 * ((s.found->>'changes_seen')::float8 + 1) THEN 'lies'
            WHEN (s.found->>'flapped')::float8 > 0.25 * ((s.found->>'unchanged')::float8 + 1) THEN 'flaps'
            ELSE 'honest' END AS rating,
       (s.found->>'changes_seen')::float8 AS changes_seen,
       (s.found->>'missed')::float8 AS missed,
       (s.found->>'unchanged')::float8 AS unchanged,
       (s.found->>'flapped')::float8 AS flapped,
       t.challenges,
       t.revisits
  FROM domain_trust t
  JOIN domain d ON d.id = t.domain_id
  JOIN prior g ON g.domain_id = t.domain_id AND g.no = t.prior_no
  CROSS JOIN LATERAL jsonb_each(t.stats) AS s(validator, found);
"""
MEANINGS: dict[str, dict[str | None, str]] = {
    "report_trust": {
        None: "How far the validators of servers can be believed, by group of pages and validator.",
        "domain_id": "the domain, by number",
        "domain": "the domain, by name",
        "template": "the URLs of the group; * for those of no known template",
        "validator": (
            "etag, last_modified; length: of the body; date: Last-Modified as an instant; condition: whether the "
            "server answers 304 while its validator is unchanged; head: whether a HEAD tells what the body would"
        ),
        "rating": (
            "honest; lies: unchanged although the page changed, so it is not sent; flaps: changed although the page "
            "did not. condition and head that lie or flap are of no use"
        ),
        "changes_seen": "looks that found a change and what the validator says of it; fading, the newest counts 1",
        "missed": "of them, those where the validator said that nothing had changed",
        "unchanged": "looks that found an unchanged body; fading, too",
        "flapped": "of them, those where the validator had changed",
        "challenges": "full looks in spite of validators, at all pages of the group",
        "revisits": "looks at pages with validators since the last lie: the more, the fewer of them are challenges",
    },
    "report_change": {
        "url": "the page; for a change of the boilerplate, the root of its domain",
        "change": "first, changed, moved, gone or back; boilerplate: the site changed what stands on all its pages",
        "version": "of the snapshot that shows it; 0 for a change of the boilerplate",
        "parts": "what changed: text, link, image, title, meta; empty where the blocks were not compared",
        "pages": "for a change of the boilerplate, on how many pages it had been seen; otherwise null",
    },
    "report_domain": {
        "freshness_plain": "expected share, 0 to 1, of known pages that are as they were when last seen, unweighted",
        "hold_until": "no request is sent before: the domain asked for it, or did not answer; null if it may be asked",
        "hold_reason": "why the domain is on hold",
    },
}


def upgrade() -> None:
    op.execute(RENAMES)
    for table in ("page", "visit"):
        op.execute(replacement(table, "reason", REASONS))
    op.execute(replacement("visit", "rung", RUNGS))
    op.execute(EVENTS)
    op.execute(TRUST)
    op.execute(VIEW)
    for view, meanings in MEANINGS.items():
        for column, meaning in meanings.items():
            what = f"VIEW {view}" if column is None else f"COLUMN {view}.{column}"
            op.execute(f"COMMENT ON {what} IS '{meaning}'")


def replacement(table: str, column: str, words: dict[str, str]) -> str:
    """The statement that puts new words in the place of old ones in a column of text."""
    cases = " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in words.items())
    those = ", ".join(f"'{old}'" for old in words)
    return f"UPDATE {table} SET {column} = CASE {column} {cases} END WHERE {column} IN ({those})"  # noqa: S608  our own


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
