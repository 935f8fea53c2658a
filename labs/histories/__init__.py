"""Histories of kinds of sites that no version control shows, made from real dates and texts, for `labs replay`."""
