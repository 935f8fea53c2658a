"""The cost of a crawl next to other crawlers: first crawls, revisits, many domains, many pages."""
