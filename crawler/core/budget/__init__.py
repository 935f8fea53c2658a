"""Budgets: the shadow price of a request at which a budget is spent, per domain and for all domains together.

`solve_plans` solves the prices of all domains from a sample of their pages. `ledger` accounts for the budget of one
day, and `hours` parses crawl hours. From core, it imports only freshness.
"""
