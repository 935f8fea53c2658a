"""Storage in Postgres. Each public function runs its own transactions or takes a connection; no rows leave the package.

There is a package or a module for each step of the crawl: domains, claim, learned, frontier, record, report, plan and
retention; each may use those before it. `subscriptions` and `outbox` store the subscriptions and their pending
notifications: `put_notifications` adds notifications of changes and advances the subscription's position in the feed
in one transaction. All of them use `database` (connections, transactions), `rows` (reading and writing rows),
`partitions` and `domain_rows` (rows of domains).

SQL statements are built only from constants of this package; all values are parameters.
"""
