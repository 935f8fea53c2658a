"""Views and functions for whoever reads with SQL: domains, pages and changes, with importance and freshness."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# The same arithmetic as crawler/core/opic/opic.py and crawler/core/freshness/belief.py; a test holds them together.
FUNCTIONS = """
CREATE FUNCTION page_importance(
    history DOUBLE PRECISION, cash DOUBLE PRECISION, circulating DOUBLE PRECISION,
    clock_last DOUBLE PRECISION, clock_now DOUBLE PRECISION, pages DOUBLE PRECISION)
RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN least(8 * circulating, clock_now) <= 0 THEN 1
        WHEN clock_now - clock_last >= least(8 * circulating, clock_now) THEN pages * cash / (clock_now - clock_last)
        ELSE pages / least(8 * circulating, clock_now)
             * (cash
                + CASE WHEN clock_last > 0 AND history > 1e-3  -- coins; less is nothing, and could underflow
                       THEN history * (least(8 * circulating, clock_now) - greatest(clock_now - clock_last, 0))
                            / least(8 * circulating, clock_last)
                       ELSE 0 END)
    END
$$;

COMMENT ON FUNCTION page_importance IS
    'Importance of a page relative to the mean page of its domain (mean 1): coins received within a window of 8 passes.
history, clock_last: columns history and clock of cash. cash: net + the dividend of its pool. circulating: coins -
dormant of domain_state. clock_now: column clock of domain_state. pages: how many take part, the sum over pool.';

CREATE FUNCTION page_freshness(a DOUBLE PRECISION, b DOUBLE PRECISION, unseen INTERVAL)
RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN extract(epoch FROM unseen) <= 0 THEN 1
        WHEN a * ln(1 + extract(epoch FROM unseen)::float8 / 86400 / b) > 700 THEN 0  -- exp would underflow
        ELSE exp(-a * ln(1 + extract(epoch FROM unseen)::float8 / 86400 / b))
    END
$$;

COMMENT ON FUNCTION page_freshness IS
    'Chance that a page has not changed since it was last seen so long ago: (b / (b + days))^a.
a, b: columns belief_a and belief_b of page.';
"""

REPORT_PAGE = """
CREATE VIEW report_page AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       p.url,
       f.state,
       page_importance(c.history, c.net + q.dividend, s.coins - s.dormant, c.clock, s.clock, n.pages) AS importance,
       CASE WHEN f.state = 'known' AND p.version > 0
            THEN page_freshness(p.belief_a, p.belief_b, greatest(now(), s.last_visit_at) - p.last_good_at) END
           AS freshness,
       p.belief_a / p.belief_b AS changes_per_day,
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
  JOIN frontier f ON f.domain_id = d.id AND f.key = p.key
  LEFT JOIN cash c ON c.domain_id = d.id AND c.key = p.key
  LEFT JOIN pool q ON q.domain_id = d.id AND q.pool = c.pool
"""

REPORT_DOMAIN = """
CREATE VIEW report_domain AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.state,
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
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_at END AS left_alone_until,
       CASE WHEN s.resume_at > greatest(now(), s.last_visit_at) THEN s.resume_reason END AS left_alone_because,
       d.budget_per_day,
       CASE WHEN s.budget_day = (greatest(now(), s.last_visit_at) AT TIME ZONE 'UTC')::date
            THEN s.spent_requests ELSE 0 END AS spent_today,
       CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  LEFT JOIN (SELECT domain_id,
                    count(*) FILTER (WHERE state = 'new') AS pages_new,
                    count(*) FILTER (WHERE state = 'known') AS pages_known,
                    count(*) FILTER (WHERE state = 'gone') AS pages_gone,
                    count(*) FILTER (WHERE state = 'moved') AS pages_moved,
                    count(*) FILTER (WHERE state = 'refused') AS pages_refused,
                    sum(importance * freshness) / nullif(sum(importance) FILTER (WHERE freshness IS NOT NULL), 0)
                        AS freshness,
                    avg(freshness) AS freshness_plain,
                    min(last_look_at) FILTER (WHERE freshness IS NOT NULL) AS oldest_look_at
               FROM report_page GROUP BY domain_id) n ON n.domain_id = d.id
"""

REPORT_CHANGE = """
CREATE VIEW report_change AS
SELECT f.position,
       f.domain_id,
       d.authority AS domain,
       e.at,
       e.url,
       e.change,
       e.version,
       e.distance_bits,
       f.appended_at
  FROM feed f
  JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
  JOIN domain d ON d.id = f.domain_id
"""

COMMENTS = {
    "report_domain": (
        "Every registered domain: what it holds, how fresh that is now, and when it is crawled next.",
        {
            "domain_id": "what the other tables and views call the domain; a constant here reads one partition only",
            "domain": "host, and port where it is not the usual one",
            "state": "active, or paused by its user",
            "registered_at": "when it was registered",
            "pages_new": "heard of, never fetched",
            "pages_known": "looked at again and again",
            "pages_gone": "not there any more; looked at now and then",
            "pages_moved": "redirect to another address for good",
            "pages_refused": "robots.txt or the scope of the domain refuses them",
            "freshness": "expected share, 0 to 1, of known pages that are as they were when last seen, by importance",
            "freshness_plain": "the same with every page counted alike",
            "oldest_look_at": "of the known pages, when the one that was longest not looked at was looked at",
            "last_visit_at": "the newest look, in knowledge time",
            "next_due_at": "when something of it is due next; null if nothing ever was",
            "left_alone_until": "the domain asked to be left alone, or did not answer; null if it may be asked",
            "left_alone_because": "why",
            "budget_per_day": "requests in a UTC day, at most; null for no limit",
            "spent_today": "requests of this UTC day",
            "holder": "the worker that crawls it now: machine, process, role",
        },
    ),
    "report_page": (
        "Every page of every domain. Say domain_id = ... rather than domain = ..., so that one partition is read.",
        {
            "domain_id": "the domain, by number",
            "domain": "the domain, by name",
            "url": "the page's one spelling",
            "state": "new, known, gone, moved or refused",
            "importance": "relative to the mean page of the domain (mean 1); null for a page outside its economy",
            "freshness": "chance that the page is as it was when last seen; null for one without a version",
            "changes_per_day": "what is believed about how often it changes: the mean of the belief",
            "version": "of its newest snapshot; 0 if there never was one",
            "due_at": "when it is looked at next; null for a new page, which waits in the order of its cash",
            "depth": "links from the nearest seed",
            "first_seen_at": "when a link or a seed told of it first",
            "last_look_at": "the newest look, whatever came of it",
            "last_good_at": "the newest look that told what the page is",
            "last_change_at": "the newest look that found it changed",
            "looks": "how often it was looked at",
            "changes": "how often it was found changed",
            "failures": "looks in a row without a good answer",
            "status": "HTTP status of the newest look; null if there was none",
            "reason": "why the newest look was no good one; empty if it was",
        },
    ),
    "report_change": (
        "The change feed: every change once, in one order. Read on from the highest position that you have seen.",
        {
            "position": "place in the feed, counted from 1; the cursor",
            "domain_id": "the domain, by number",
            "domain": "the domain, by name",
            "at": "when the change was found",
            "url": "the page",
            "change": "first, changed, moved, gone or back",
            "version": "of the snapshot that shows it",
            "distance_bits": "size of the change: bits of 64 in which the fingerprints differ; null without text",
            "appended_at": "when it was put into the feed",
        },
    ),
}


def upgrade() -> None:
    op.execute(FUNCTIONS)
    for statement in (REPORT_PAGE, REPORT_DOMAIN, REPORT_CHANGE):
        op.execute(statement)
    for view, (about, columns) in COMMENTS.items():
        op.execute(f"COMMENT ON VIEW {view} IS {quoted(about)}")
        for column, meaning in columns.items():
            op.execute(f"COMMENT ON COLUMN {view}.{column} IS {quoted(meaning)}")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
