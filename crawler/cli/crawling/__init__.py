"""Commands that crawl or request revisits: crawl, refresh, hint."""
