"""The decisions of recrawl: pure functions and frozen values.

Nothing here waits, logs, or reads a clock, a setting or a row. The packages are layered: each imports only packages
below it (docs/architecture.md). Modules beside them are, for example, `domain` (Domain, Lease, Suspension),
`domain_settings` (settings per domain) and `page_rules` (a user's rules for the pages that match a pattern).
"""
