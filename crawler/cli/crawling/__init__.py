"""The commands that crawl, or decide what is crawled next: crawl, refresh, hint."""
