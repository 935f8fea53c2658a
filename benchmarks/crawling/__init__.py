"""What a crawl costs, beside other crawlers in the same run: the first, the second, of many domains, of many pages."""
