"""The decisions of recrawl: pure functions and frozen values.

Nothing here waits, reads a clock, the settings or a row, or writes a log. Eleven rooms by subject, each using only
those that stand below it: validators, visit, soft_errors, change, volatile, novelty, budget, freshness, cash, page,
http. Beside them stand `domain` (Domain, its settings, Lease, Hold) and `page_rules` (what a user says about pages of a
pattern).
"""
