"""What was learnt of a domain and is read when a lease begins.

`memories` has the noise mask, soft errors, renders and novelty; `credibility` how far validators and sources of change
signals are believed. Uses claim and domains.
"""
