"""The other crawlers, each a script for a process of its own that takes a site's URL and walks it."""
