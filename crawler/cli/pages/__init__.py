"""Commands about pages: pages, duplicates, explain, try, versions, show, diff."""
