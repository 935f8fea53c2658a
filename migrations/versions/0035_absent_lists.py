"""report_domain: a sitemap or feed that was looked for and never there is no page that is gone."""

from alembic import op

revision = "0035"
down_revision = "0033"
branch_labels = None
depends_on = None

REPORT_DOMAIN = """
CREATE OR REPLACE VIEW report_domain AS
SELECT d.id AS domain_id,
       d.authority AS domain,
       d.state,
       coalesce(l.importance, d.weight) AS importance,
       d.registered_at,
       coalesce(n.pages_new, 0) AS pages_new,
       coalesce(n.pages_known, 0) AS pages_known,
       coalesce(n.pages_gone, 0) - (SELECT count(*) FROM url_list u JOIN frontier f USING (domain_id, key)
                                     WHERE u.domain_id = d.id AND u.kind = '' AND f.state = 'gone') AS pages_gone,
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
       CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder
  FROM domain d
  JOIN domain_state s ON s.domain_id = d.id
  LEFT JOIN domain_plan l ON l.domain_id = d.id
  LEFT JOIN (SELECT r.domain_id,
                    count(*) FILTER (WHERE r.state = 'new') AS pages_new,
                    count(*) FILTER (WHERE r.state = 'known') AS pages_known,
                    count(*) FILTER (WHERE r.state = 'gone') AS pages_gone,
                    count(*) FILTER (WHERE r.state = 'moved') AS pages_moved,
                    count(*) FILTER (WHERE r.state = 'refused') AS pages_refused,
                    sum(r.importance * r.freshness)
                        / nullif(sum(r.importance) FILTER (WHERE r.freshness IS NOT NULL), 0) AS freshness,
                    avg(r.freshness) AS freshness_plain,
                    min(r.last_look_at) FILTER (WHERE r.freshness IS NOT NULL) AS oldest_look_at
               FROM report_page r
              GROUP BY r.domain_id) n ON n.domain_id = d.id
"""


def upgrade() -> None:
    op.execute(REPORT_DOMAIN)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
