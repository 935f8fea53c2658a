"""One look, decided.

`decide_visit` is a pure function from a target, the answer, the time and what the domain knows to a Visit: the change,
the rung that decided, what was learnt, the next due time. `lifecycle` decides the looks that brought no page. Uses
soft_errors and what is below it.
"""
