"""Experiments with the real crawler: recorded histories of real sites, replayed on a virtual clock."""
