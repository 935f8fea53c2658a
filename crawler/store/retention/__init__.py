"""Retention: remove old versions, pack and delete old visits, delete old changes, and measure the space of all this.

Each function processes one chunk or finds the next one; crawler/prune.py calls them. Of the store, this package uses
only the modules, not the other packages.
"""
