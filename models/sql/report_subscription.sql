CREATE VIEW report_subscription AS
SELECT s.id AS subscription,
       s.target,
       s.domain_id,
       d.authority AS domain,
       s.tag,
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
COMMENT ON VIEW report_subscription IS 'Subscriptions to changes, and the state of their delivery.';
COMMENT ON COLUMN report_subscription.subscription IS 'number of the subscription, as in recrawl notify list';
COMMENT ON COLUMN report_subscription.target IS
    'where messages are sent: a URL, a command, or a reference to a secret with the URL';
COMMENT ON COLUMN report_subscription.domain_id IS 'number of the domain; null for all domains';
COMMENT ON COLUMN report_subscription.domain IS 'name of the domain; null for all domains';
COMMENT ON COLUMN report_subscription.tag IS 'tag of the domains; null for all domains, or for one';
COMMENT ON COLUMN report_subscription.created_at IS
    'when the subscription was created; earlier changes are not notified';
COMMENT ON COLUMN report_subscription.paused_at IS 'when the user paused the subscription; null if it is not paused';
COMMENT ON COLUMN report_subscription.quiet IS 'quiet hours, as the user entered them; empty for none';
COMMENT ON COLUMN report_subscription.zone IS 'time zone of the quiet hours';
COMMENT ON COLUMN report_subscription.delivered IS 'changes delivered to the receiver';
COMMENT ON COLUMN report_subscription.delivered_at IS 'when the last change was delivered';
COMMENT ON COLUMN report_subscription.waiting IS 'changes not delivered yet, without dead letters';
COMMENT ON COLUMN report_subscription.waiting_since IS
    'when the oldest of these is or was due; in the future if it waits for a digest or the end of quiet hours';
COMMENT ON COLUMN report_subscription.unread_since IS
    'when the oldest change was found that was not yet read from the feed for this subscription; null if all are read';
COMMENT ON COLUMN report_subscription.failures IS 'consecutive failed deliveries';
COMMENT ON COLUMN report_subscription.failing_since IS 'when the first of these deliveries failed; null if none did';
COMMENT ON COLUMN report_subscription.next_try_at IS
    'when the next delivery is tried after a failure; null without a failure or while paused';
COMMENT ON COLUMN report_subscription.reason IS 'why the last delivery failed; empty if it did not';
COMMENT ON COLUMN report_subscription.dead IS 'messages that were given up (dead letters)';
