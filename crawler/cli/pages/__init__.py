"""The commands about single pages: pages, duplicates, explain, try, versions, show, diff."""
