"""The other crawlers: scripts that run in a separate process, take the URL of a site and crawl it."""
