"""One request and its answer: URLs, answers, robots.txt, and back-off.

`normalize_url` makes the one spelling of a URL by which a page is known; Fetched, NotModified and Unreached are the
possible answers; `compute_backoff` says how long a domain that refuses is left alone. The lowest room.
"""
