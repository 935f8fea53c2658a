"""Sitemaps, feeds and other lists of URLs: what they name, and the dates they give."""
