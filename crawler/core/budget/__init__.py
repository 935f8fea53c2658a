"""The shadow price of a request: the price at which a budget is spent, by domain and over all domains.

`solve_plans` solves the prices of all domains from a sample of their pages; `ledger` is the arithmetic of one day's
budget, `hours` that of calendar windows. Uses freshness and what is below it.
"""
