"""Experiments on a virtual clock: worlds whose truth is known, rival policies, and ours as the crawl calls it.

Nothing of the product uses it. It uses core; `graphs` and `looks` read a real domain from the store.
"""
