"""REMEMBERS: Postgres. One public function is one transaction, and rows stay inside.

A package or a module for each verb of the crawl's loop: domains, claim, learned, frontier, record, report, plan, and
retention; each may use those before it. `subscriptions` and `outbox` say who is told of changes, and what waits for
them: `put_notifications` takes changes from the feed and moves the subscription's position in one transaction. Beside
them `database` (connections, transactions), `rows` (read and written by statements) and `partitions`; `domain_rows` is
what the packages need of domains.
"""
