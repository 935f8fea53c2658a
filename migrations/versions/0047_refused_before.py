"""Pages that were refused before the feed told of it are told now, to whoever is told of all other news as well."""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

# At its last look, which found that; events of a domain are numbered without gaps.
EVENTS = """
WITH refused AS (
    SELECT p.domain_id, p.key, p.url, p.version, coalesce(p.last_look_at, p.first_seen_at) AS at,
           row_number() OVER (PARTITION BY p.domain_id ORDER BY p.last_look_at, p.key) - 1 AS place
      FROM page p JOIN frontier f USING (domain_id, key)
     WHERE f.state = 'refused' AND p.version > 0
       AND 'refused' IS DISTINCT FROM (SELECT e.change FROM event e
                                        WHERE e.domain_id = p.domain_id AND e.key = p.key AND e.change <> 'hint'
                                        ORDER BY e.number DESC LIMIT 1)),
room AS (
    UPDATE domain_state s SET next_event = s.next_event + r.many
      FROM (SELECT domain_id, count(*) AS many FROM refused GROUP BY domain_id) r
     WHERE s.domain_id = r.domain_id
 RETURNING s.domain_id, s.next_event - r.many AS first)
INSERT INTO event (domain_id, number, at, key, url, change, version)
SELECT r.domain_id, room.first + r.place, r.at, r.key, r.url, 'refused', r.version
  FROM refused r JOIN room USING (domain_id);
"""
# Those with a condition are told of what pages say; what a page says that is refused nobody knows.
SUBSCRIPTIONS = """
UPDATE subscription SET kinds = kinds || '{refused}'
 WHERE condition = '' AND kinds @> '{changed,moved,gone,back,boilerplate,held_back,let_go}'
   AND NOT kinds @> '{refused}';
"""


def upgrade() -> None:
    op.execute(EVENTS)
    op.execute(SUBSCRIPTIONS)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
