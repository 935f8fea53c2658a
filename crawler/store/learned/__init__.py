"""What was learnt of a domain and is read when a lease begins: noise mask, soft errors, trust, priors.

`learned_memories` reads mask, soft errors and renders at once. Uses claim and domains.
"""
