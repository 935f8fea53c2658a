"""Storage in Postgres. A function that queries it takes a connection, or a database, on which it opens transactions.

There is a package or a module for each step of the crawl: domains, claim, learned, frontier, record, report, plan and
retention; each says which others it may use. `subscriptions` and `outbox` store the subscriptions and their pending
notifications. All of them may use `database` (connections, transactions), `rows` (reading and writing rows),
`partitions` and `domain_rows` (rows of domains).

SQL statements are built from constants of this package; values are parameters, or psycopg quotes them. Only
report/sql.py runs statements of a user.
"""
