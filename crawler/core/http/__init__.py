"""HTTP: URLs, responses, robots.txt, credentials and back-off.

`normalize_url` returns the normal form of a URL, which identifies a page. Fetched, NotModified and Unreached are the
possible responses. `compute_backoff` computes how long to wait after failures. Imports no other core package.
"""
