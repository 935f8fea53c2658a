"""Figures of large domains, counted by the hour and kept: counts, freshness by part, the most important pages."""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE domain_figures (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    counted_at TIMESTAMPTZ NOT NULL,
    new BIGINT NOT NULL DEFAULT 0,
    held_back BIGINT NOT NULL DEFAULT 0,
    known BIGINT NOT NULL DEFAULT 0,
    gone BIGINT NOT NULL DEFAULT 0,
    moved BIGINT NOT NULL DEFAULT 0,
    refused BIGINT NOT NULL DEFAULT 0,
    freshness FLOAT8,
    freshness_plain FLOAT8,
    oldest_look_at TIMESTAMPTZ,
    alike JSONB,
    PRIMARY KEY (domain_id)
);

CREATE TABLE freshness_figures (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    grouped_by TEXT NOT NULL,
    template TEXT NOT NULL,
    decile SMALLINT NOT NULL,
    pages BIGINT NOT NULL,
    freshness FLOAT8,
    freshness_plain FLOAT8,
    mean_age INTERVAL,
    oldest_age INTERVAL,
    shortest_interval INTERVAL,
    mean_interval INTERVAL,
    longest_interval INTERVAL,
    PRIMARY KEY (domain_id, grouped_by, template, decile),
    CONSTRAINT freshness_figures_group CHECK (grouped_by IN ('domain', 'template', 'decile'))
);

CREATE TABLE top_page (
    domain_id BIGINT NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    ranking TEXT NOT NULL,
    place SMALLINT NOT NULL,
    key BYTEA NOT NULL,
    PRIMARY KEY (domain_id, ranking, place)
);
"""
# crawler/store/report/figures.py has the same numbers. The smallest domains come first, so that asking for all of them
# takes a second at most, however many were looked at since the last plan.
WHO_IS_COUNTED = """
CREATE VIEW domain_counted_live AS
SELECT domain_id,
       counted_at IS NULL
           OR is_outdated AND sum(tracked) FILTER (WHERE is_outdated) OVER (ORDER BY tracked, domain_id) <= 100000
           AS is_live
  FROM (SELECT s.domain_id, s.tracked, g.counted_at,
               s.tracked <= 2000 AND (coalesce(s.last_visit_at > g.counted_at, false)
                                      OR g.counted_at < now() - interval '3 hours') AS is_outdated
          FROM domain_state s LEFT JOIN domain_figures g USING (domain_id)) x;
COMMENT ON COLUMN domain_counted_live.domain_id IS 'the domain, by number';
COMMENT ON COLUMN domain_counted_live.is_live IS 'whether it is counted while a report is asked';
COMMENT ON VIEW domain_counted_live IS
    'Which domains the reports count while they are asked, and do not read in table domain_figures: those never counted,
and small ones that were looked at since, or were counted more than three hours ago.';
"""

VIEWS = """
CREATE OR REPLACE VIEW report_domain AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.state,
       coalesce(l.importance, d.weight) AS importance,
       d.registered_at,
       coalesce(n.pages_new, 0) AS pages_new,
       coalesce(n.pages_known, 0) AS pages_known,
       coalesce(n.pages_gone, 0) AS pages_gone,
       coalesce(n.pages_moved, 0) AS pages_moved,
       coalesce(n.pages_refused, 0) AS pages_refused,
       n.freshness,
       n.freshness_plain,
       n.oldest_look_at,
       s.last_visit_at,
       s.wake_at AS next_due_at,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_at END AS hold_until,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_reason END AS hold_reason,
       d.budget_per_day,
       CASE WHEN s.budget_day = (greatest(now(), s.last_visit_at) AT TIME ZONE 'UTC')::date
            THEN s.spent_requests ELSE 0 END AS spent_today,
       CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder,
       n.counted_at
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  LEFT JOIN domain_plan l ON l.domain_id = d.id
  LEFT JOIN (
       SELECT g.domain_id, g.new AS pages_new, g.known AS pages_known, g.gone AS pages_gone, g.moved AS pages_moved,
              g.refused AS pages_refused, g.freshness, g.freshness_plain, g.oldest_look_at, g.counted_at
         FROM domain_figures g JOIN domain_counted_live l USING (domain_id)
        WHERE NOT l.is_live
        UNION ALL
       SELECT s.domain_id, r.*
         FROM domain_state s
         JOIN domain_counted_live l USING (domain_id)
        CROSS JOIN LATERAL (
              SELECT count(*) FILTER (WHERE r.state = 'new') AS pages_new,
                     count(*) FILTER (WHERE r.state = 'known') AS pages_known,
                     count(*) FILTER (WHERE r.state = 'gone')
                         - (SELECT count(*) FROM url_list u JOIN frontier f USING (domain_id, key)
                             WHERE u.domain_id = s.domain_id AND u.kind = '' AND f.state = 'gone') AS pages_gone,
                     count(*) FILTER (WHERE r.state = 'moved') AS pages_moved,
                     count(*) FILTER (WHERE r.state = 'refused') AS pages_refused,
                     sum(r.importance * r.freshness)
                         / nullif(sum(r.importance) FILTER (WHERE r.freshness IS NOT NULL), 0) AS freshness,
                     avg(r.freshness) AS freshness_plain,
                     min(r.last_look_at) FILTER (WHERE r.freshness IS NOT NULL) AS oldest_look_at,
                     greatest(now(), s.last_visit_at) AS counted_at
                FROM report_page r WHERE r.domain_id = s.domain_id) r
        WHERE l.is_live) n ON n.domain_id = d.id;

DROP VIEW report_freshness;
CREATE VIEW report_freshness AS
SELECT g.domain_id,
       d.authority AS domain,
       g.grouped_by,
       nullif(g.template, '') AS template,
       nullif(g.decile, 0)::int AS decile,
       g.pages,
       g.freshness,
       g.freshness_plain,
       g.mean_age,
       g.oldest_age,
       g.shortest_interval,
       g.mean_interval,
       g.longest_interval,
       f.counted_at
  FROM freshness_figures g
  JOIN domain_figures f USING (domain_id)
  JOIN domain_counted_live l USING (domain_id)
  JOIN domain d ON d.id = g.domain_id
 WHERE NOT l.is_live
 UNION ALL
SELECT d.id,
       d.authority,
       r.grouped_by,
       r.template,
       r.decile,
       r.pages,
       r.freshness,
       r.freshness_plain,
       r.mean_age,
       r.oldest_age,
       r.shortest_interval,
       r.mean_interval,
       r.longest_interval,
       greatest(now(), s.last_visit_at)
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  JOIN domain_counted_live l ON l.domain_id = d.id
 CROSS JOIN LATERAL (
SELECT CASE WHEN grouping(template) = 0 THEN 'template' WHEN grouping(decile) = 0 THEN 'decile' ELSE 'domain' END
           AS grouped_by,
       template,
       decile,
       sum(pages)::bigint AS pages,
       sum(fresh_importance) / nullif(sum(importance), 0) AS freshness,
       sum(fresh_pages) / sum(pages)::float8 AS freshness_plain,
       make_interval(secs => sum(age_s) / sum(pages)::float8) AS mean_age,
       make_interval(secs => max(oldest_s)) AS oldest_age,
       make_interval(secs => min(shortest_s)) AS shortest_interval,
       make_interval(secs => sum(interval_s) / sum(pages)::float8) AS mean_interval,
       make_interval(secs => max(longest_s)) AS longest_interval
  FROM (SELECT template, decile, count(*) AS pages, sum(importance) AS importance,
               sum(importance * freshness) AS fresh_importance, sum(freshness) AS fresh_pages,
               sum(age_s) AS age_s, max(age_s) AS oldest_s, sum(interval_s) AS interval_s,
               min(interval_s) AS shortest_s, max(interval_s) AS longest_s
          FROM (SELECT template, importance, freshness,
                       extract(epoch FROM age)::float8 AS age_s,
                       extract(epoch FROM next_interval)::float8 AS interval_s,
                       ntile(10) OVER (ORDER BY importance DESC NULLS LAST) AS decile
                  FROM (SELECT template, importance, freshness, age, next_interval
                          FROM report_page p
                         WHERE p.domain_id = d.id AND state = 'known' AND version > 0 OFFSET 0) x  -- worked out once
               ) p
         GROUP BY template, decile) g
 GROUP BY GROUPING SETS ((), (template), (decile)) HAVING sum(pages) > 0) r
 WHERE l.is_live;
"""
COUNTED = "when that was counted: now, or in a domain of more than 2000 pages by the last plan; ages are of then"
MEANINGS: dict[str, dict[str | None, str]] = {
    "report_domain": {"counted_at": COUNTED},
    "report_freshness": {
        None: "Freshness, age and intervals of the known pages: by domain, by URL template, by decile of importance.",
        "domain_id": "the domain, by number",
        "domain": "the domain, by name",
        "grouped_by": "domain, template or decile: what the row is about",
        "template": "of a row by template: the URL template; * for pages that have none",
        "decile": "of a row by decile: 1 for the most important tenth of the domain's pages, 10 for the least",
        "pages": "known pages that have a version",
        "freshness": "expected share, 0 to 1, that are as they were when last seen, weighted by importance",
        "freshness_plain": "the same with every page counted alike",
        "mean_age": "time since their newest good looks, on average",
        "oldest_age": "the longest such time",
        "shortest_interval": "from the newest look to the next, the shortest",
        "mean_interval": "the same, on average",
        "longest_interval": "the same, the longest",
        "counted_at": COUNTED,
    },
}
# Roles of `recrawl db grant` may read the view that is made anew, as before.
READERS = """
DO $$
DECLARE reader name;
BEGIN
    FOR reader IN SELECT pg_get_userbyid(a.grantee) FROM pg_class c, aclexplode(c.relacl) a
                   WHERE c.oid = 'report_domain'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT SELECT ON report_freshness TO %I', reader);
    END LOOP;
END $$
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(WHO_IS_COUNTED)
    op.execute(VIEWS)
    op.execute(READERS)
    for view, columns in MEANINGS.items():
        for column, meaning in columns.items():
            what = f"VIEW {view}" if column is None else f"COLUMN {view}.{column}"
            op.execute(f"COMMENT ON {what} IS {quoted(meaning)}")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
