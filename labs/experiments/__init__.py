"""Experiments on a virtual clock: worlds whose truth is known, policies of other crawlers, and the product's own rules.

The product does not use this package. It uses core; `graphs` and `visits` read a crawled domain from the store.
"""
