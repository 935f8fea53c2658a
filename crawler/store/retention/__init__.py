"""Retention: thin old versions, pack and delete old visits, delete old changes, vacuum, and estimate freeable space.

Most functions process one chunk or find the next one; crawler/prune.py calls them. This package uses modules of the
store, but none of its other packages.
"""
