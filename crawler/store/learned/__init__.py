"""What visits have taught about a domain, read when a lease begins.

`memories` stores the noise mask, soft errors, renders and novelty; `credibility` the reliability of validators and of
sources of change signals. Uses claim and domains.
"""
