CREATE VIEW report_subscription AS
SELECT s.id AS subscription,
       s.target,
       s.domain_id,
       d.authority AS domain,
       s.created_at,
       s.paused_at,
       s.quiet,
       s.zone,
       s.delivered,
       s.delivered_at,
       w.waiting,
       w.waiting_since,
       (SELECT f.appended_at FROM feed f
         WHERE f.position > s.position AND (s.pause_position IS NULL OR f.position <= s.pause_position)
         ORDER BY f.position LIMIT 1) AS unread_since,
       s.failures,
       s.failing_since,
       CASE WHEN s.paused_at IS NULL THEN coalesce(s.resume_at, t.next_try_at) END AS next_try_at,
       coalesce(nullif(s.last_error, ''), t.last_error, '') AS reason,
       (SELECT count(*) FROM message m WHERE m.subscription_id = s.id AND m.state = 'dead') AS dead
  FROM subscription s
  LEFT JOIN domain d ON d.id = s.domain_id
 CROSS JOIN LATERAL (SELECT count(*) AS waiting, min(n.due_at) AS waiting_since
                       FROM notice n LEFT JOIN message m ON m.id = n.message_id
                      WHERE n.subscription_id = s.id AND m.state IS DISTINCT FROM 'dead') w
  LEFT JOIN LATERAL (SELECT m.next_try_at, m.last_error FROM message m
                      WHERE m.subscription_id = s.id AND m.state = 'waiting' AND m.tries > 0
                      ORDER BY m.next_try_at, m.id LIMIT 1) t ON true;
COMMENT ON VIEW report_subscription IS 'Who is told of changes, and how that is going.';
COMMENT ON COLUMN report_subscription.subscription IS 'its number, as in recrawl notify list';
COMMENT ON COLUMN report_subscription.target IS 'where its messages go, or the place where that address stands';
COMMENT ON COLUMN report_subscription.domain_id IS 'the domain, by number; null for all domains';
COMMENT ON COLUMN report_subscription.domain IS 'the domain, by name; null for all domains';
COMMENT ON COLUMN report_subscription.created_at IS 'when it was made; what was found before is not told';
COMMENT ON COLUMN report_subscription.paused_at IS 'since when nothing is sent, by its user''s wish';
COMMENT ON COLUMN report_subscription.quiet IS 'hours in which nothing is sent, as they were typed; empty for none';
COMMENT ON COLUMN report_subscription.zone IS 'by whose clock these are';
COMMENT ON COLUMN report_subscription.delivered IS 'changes that its receiver took';
COMMENT ON COLUMN report_subscription.delivered_at IS 'when it took the last of them';
COMMENT ON COLUMN report_subscription.waiting IS 'changes that it was not told yet, without those that were given up';
COMMENT ON COLUMN report_subscription.waiting_since IS
    'when the oldest of these was due; later than now while a digest or quiet hours keep them back';
COMMENT ON COLUMN report_subscription.unread_since IS
    'when the first change was found that nobody has read the feed for on its behalf; null where all is read';
COMMENT ON COLUMN report_subscription.failures IS 'of its receiver, in a row';
COMMENT ON COLUMN report_subscription.failing_since IS 'when the first of these was';
COMMENT ON COLUMN report_subscription.next_try_at IS 'when what was not taken is tried again';
COMMENT ON COLUMN report_subscription.reason IS 'why it was not taken; empty where nothing failed';
COMMENT ON COLUMN report_subscription.dead IS 'messages that were given up (dead letters)';
