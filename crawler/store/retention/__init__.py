"""Retention: remove old versions, pack and delete old visits, delete old changes, and measure the space of all this.

Each function processes one chunk or finds the next one; crawler/prune.py calls them. This is the last package of the
store, and it uses only the modules beside the packages.
"""
