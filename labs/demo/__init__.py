"""A living site whose changes are known to the second, crawled for a virtual month.

`tour` is what `make crawl` shows. Uses the whole product as a user would.
"""
