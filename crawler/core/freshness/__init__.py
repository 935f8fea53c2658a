"""Freshness: how often pages change, and the value of a look.

`belief` holds a Gamma over a page's Poisson change rate; `value` is the gain of a look; `compute_due_gap` says when it
is worth its price; `select_pages` takes the best of the pages that are due. Uses cash, page and http.
"""
