"""The cost of the store: claims and records in domains of any size, filled by SQL as a crawl leaves them."""
