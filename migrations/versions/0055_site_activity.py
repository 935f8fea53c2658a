"""Site activity, learned by each plan from the visits of 120 days, in place of the site's clock."""

from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE domain_state DROP COLUMN site_clock_changes, DROP COLUMN site_clock_rates, DROP COLUMN site_clock_scores,
    DROP COLUMN site_clock_weighed;
ALTER TABLE domain_state RENAME COLUMN site_clock_at TO activity_at;
ALTER TABLE domain_state RENAME COLUMN site_clock_ahead TO activity_ahead;
-- The next plan learns them.
UPDATE domain_state SET activity_at = '{}', activity_ahead = '{}' WHERE activity_at <> '{}';
"""
FUNCTIONS = """
ALTER FUNCTION site_clock_ahead(timestamptz[], float8[], timestamptz) RENAME TO activity_ahead;
COMMENT ON FUNCTION activity_ahead(timestamptz[], float8[], timestamptz) IS
    'Days by which the activity of a site has gone ahead of the calendar since then; below 0 where there was less.
at, ahead: columns activity_at and activity_ahead of domain_state.';
ALTER FUNCTION site_gap(timestamptz, timestamptz[], float8[], timestamptz) RENAME TO activity_gap;
CREATE OR REPLACE FUNCTION activity_gap(now timestamptz, at timestamptz[], ahead float8[], since timestamptz)
RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN cardinality(at) = 0 THEN now - since
                ELSE greatest(make_interval(secs => date_part('epoch', now - since)
                                                    + 86400 * activity_ahead(at, ahead, since)), interval '0') END
$$;
COMMENT ON FUNCTION activity_gap(timestamptz, timestamptz[], float8[], timestamptz) IS
    'The time since then in days of activity: what the pages of a site have aged. Other arguments: see activity_ahead.';
"""


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(FUNCTIONS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
