"""What visits have taught about a domain.

`domain_memory` stores the noise mask, soft errors, renders and novelty; `credibility` the reliability of validators and
of sources of change signals. This package may use claim and domains.
"""
