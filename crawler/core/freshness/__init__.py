"""Freshness: how often pages change, and the value of a visit.

`estimates` has the Gamma posterior of a page's Poisson change rate. `visit_value` computes the value of a visit;
`compute_due_gap` returns when it reaches the shadow price; `select_pages` selects the best of the due pages. From
core, it imports only http.
"""
