"""The decision about one visit.

`decide_visit` is a pure function of the target (the page), the response, the time and the knowledge about the domain.
It returns a Visit: the change with its evidence, the updated estimates, and the next due time. `lifecycle` decides
visits that brought no page.
"""
