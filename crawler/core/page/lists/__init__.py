"""Sitemaps, feeds and other lists of URLs, with the dates they contain."""
