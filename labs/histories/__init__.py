"""Histories of kinds of sites that no version control has, made from real dates and texts, for `labs replay`."""
