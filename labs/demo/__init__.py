"""A living site whose changes are known exactly, crawled for a virtual month.

`tour` implements `make crawl`. It uses the whole product as a user does.
"""
