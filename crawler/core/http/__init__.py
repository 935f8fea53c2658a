"""HTTP: URLs, responses, robots.txt, credentials and back-off.

`normalize_url` returns the normal form of a URL, which identifies a page. Fetched, NotModified and Unreached are the
possible responses. `compute_backoff` computes how long a domain that responds with 429 or 503 is suspended. Imports no
other core package.
"""
