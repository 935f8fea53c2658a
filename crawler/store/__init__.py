"""REMEMBERS: Postgres. One public function is one transaction, and rows stay inside.

A room for each verb of the crawl's loop: domains, claim, learned, hand_out, record, report, plan, and retention; each
may use those before it. Beside them `database` (connections, transactions, migrations), `columns` and `partitions`.
"""
