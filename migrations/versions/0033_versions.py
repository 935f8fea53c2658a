"""Versions of pages for whoever looks at them: indexes for newest changes and for one page's, and views with texts."""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

INDEXES = """
CREATE INDEX event_page ON event (domain_id, key, number);
CREATE INDEX event_time ON event (at, domain_id, number);
CREATE INDEX event_news ON event (at, domain_id, number) WHERE change <> 'first';
"""

VIEWS = """
CREATE OR REPLACE VIEW report_page AS
SELECT x.domain_id, x.domain, x.url, x.state,
       CASE WHEN x.discovery_order = 'mixed' THEN (1 - x.url_share) * x.popularity + x.url_share * x.url_score
            ELSE x.popularity END AS importance,
       x.popularity, x.url_score, x.favoured, x.freshness, x.changes_per_day, x.version, x.due_at, x.depth,
       x.first_seen_at, x.last_look_at, x.last_good_at, x.last_change_at, x.looks, x.changes, x.failures, x.status,
       x.reason, x.key, x.template, x.age, x.due_at - x.last_look_at AS next_interval
  FROM (
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.discovery_order,
       d.url_share,
       p.url,
       f.state,
       page_importance(c.history, c.net + q.dividend, s.coins - s.dormant, c.clock, s.clock, n.pages, s.window_passes)
           AS popularity,
       f.url_score,
       f.favoured,
       CASE WHEN f.state = 'known' AND p.version > 0 AND p.failures > 0 AND p.status IN (404, 410) THEN 0
            WHEN f.state = 'known' AND p.version > 0 AND h.silence IS NULL  -- so it is inlined: a third of the time
            THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                                greatest(now(), s.last_visit_at) - p.last_good_at)
            WHEN f.state = 'known' AND p.version > 0
            THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                                heard_gap(greatest(now(), s.last_visit_at) - p.last_good_at,
                                          signals_and_deploys(p.signals, h.deploy, s.deployed_at, p.last_good_at),
                                          h.recall, h.noise, h.silence, g.a + p.evidence_a, g.b + p.evidence_b))
            END AS freshness,
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
       p.reason,
       p.key,
       g.template,
       greatest(now(), s.last_visit_at) - p.last_good_at AS age
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  JOIN (SELECT domain_id, sum(pages)::float8 AS pages FROM pool GROUP BY domain_id) n ON n.domain_id = d.id
  LEFT JOIN (SELECT domain_id, array_agg(recall ORDER BY no) AS recall, array_agg(noise ORDER BY no) AS noise,
                    max(silence) AS silence, max(no) FILTER (WHERE source = 'deploy')::int AS deploy
               FROM domain_source GROUP BY domain_id) h ON h.domain_id = d.id
  JOIN page p ON p.domain_id = d.id
  JOIN prior g ON g.domain_id = d.id AND g.no = p.prior_no
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool) x;

CREATE VIEW page_text AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       p.key,
       f.state,
       p.version,
       v.at,
       v.title,
       v.language,
       v.content_type,
       v.text
  FROM domain d
  JOIN page p ON p.domain_id = d.id
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  JOIN snapshot v ON v.domain_id = d.id AND v.key = p.key AND v.number = p.version;

CREATE VIEW page_versions AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       p.key,
       v.number AS version,
       v.at,
       (SELECT n.at FROM snapshot n
         WHERE n.domain_id = d.id AND n.key = v.key AND n.number = v.number + 1) AS until,
       e.change,
       e.parts,
       e.amount,
       v.title,
       v.language,
       v.content_type,
       octet_length(v.text) AS text_bytes,
       c.body_bytes,
       v.is_rendered
  FROM domain d
  JOIN page p ON p.domain_id = d.id
  JOIN snapshot v ON v.domain_id = d.id AND v.key = p.key
  LEFT JOIN LATERAL (SELECT o.change, o.parts, o.amount FROM event o
                      WHERE o.domain_id = d.id AND o.key = v.key AND o.version = v.number AND o.at = v.at
                      ORDER BY o.number LIMIT 1) e ON true
  LEFT JOIN content c ON c.domain_id = d.id AND c.digest = v.body_digest;

CREATE VIEW report_freshness AS
SELECT domain_id,
       domain,
       CASE WHEN grouping(template) = 0 THEN 'template' WHEN grouping(decile) = 0 THEN 'decile' ELSE 'domain' END
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
  FROM (SELECT domain_id, domain, template, decile, count(*) AS pages, sum(importance) AS importance,
               sum(importance * freshness) AS fresh_importance, sum(freshness) AS fresh_pages,
               sum(age_s) AS age_s, max(age_s) AS oldest_s, sum(interval_s) AS interval_s,
               min(interval_s) AS shortest_s, max(interval_s) AS longest_s
          FROM (SELECT domain_id, domain, template, importance, freshness,
                       extract(epoch FROM age)::float8 AS age_s,
                       extract(epoch FROM next_interval)::float8 AS interval_s,
                       ntile(10) OVER (PARTITION BY domain_id ORDER BY importance DESC NULLS LAST) AS decile
                  FROM (SELECT domain_id, domain, template, importance, freshness, age, next_interval
                          FROM report_page WHERE state = 'known' AND version > 0 OFFSET 0) x  -- worked out once
               ) p
         GROUP BY domain_id, domain, template, decile) g
 GROUP BY GROUPING SETS ((domain_id, domain), (domain_id, domain, template), (domain_id, domain, decile));
"""
PAGE: dict[str | None, str] = {
    "domain_id": "the domain, by number",
    "domain": "the domain, by name",
    "url": "the page's one spelling",
    "key": "the page, by 16 bytes that follow from its URL",
}
MEANINGS: dict[str, dict[str | None, str]] = {
    "report_page": {
        "key": PAGE["key"],
        "template": "URL template of its group; * for the pages of the domain that have none",
        "age": "time since the newest look that told what the page is",
        "next_interval": "from the newest look to the next; null for a page that waits in its turn",
    },
    "page_text": PAGE
    | {
        None: "The newest text of every page. Say domain_id = ... rather than domain = ...: one partition is read.",
        "state": "known, gone, moved or refused: of a page that is gone this is what it said last",
        "version": "number of its newest version, counted from 1",
        "at": "when that version was first seen",
        "title": "its title",
        "language": "the language that it says it is in; empty if it says none",
        "content_type": "the media type that its server gave",
        "text": "its main text: one block in a line, without what frames the content",
    },
    "page_versions": PAGE
    | {
        None: "Every version of every page: written when a page is seen first, changed, or is back with other words.",
        "version": "counted from 1 without gaps",
        "at": "when it was first seen",
        "until": "when the next version was first seen; null for the newest",
        "change": "first, changed or back; null for a list of URLs",
        "parts": "what changed: text, link, image, title, meta; empty where the blocks were not compared",
        "amount": "the part of the page that changed, 0 to 1; null where nobody can tell",
        "title": "its title",
        "language": "the language that it says it is in; empty if it says none",
        "content_type": "the media type that its server gave",
        "text_bytes": "size of its main text",
        "body_bytes": "size of its body before compression; null where the body is not kept",
        "is_rendered": "whether its body is the document that a browser made of the page",
    },
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
    },
}


def upgrade() -> None:
    op.execute(INDEXES)
    op.execute(VIEWS)
    for view, columns in MEANINGS.items():
        for column, meaning in columns.items():
            what = f"VIEW {view}" if column is None else f"COLUMN {view}.{column}"
            op.execute(f"COMMENT ON {what} IS {quoted(meaning)}")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
