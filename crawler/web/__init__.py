"""LOOKS: one request, one deadline.

`Http` sends one GET or HEAD with all sizes, times and addresses bounded (`guard` checks each address when it
connects) and answers with a value, never an exception of the web. Uses core alone; it never meets the store.
"""

from crawler.web.guard import refusal
from crawler.web.http import Http

__all__ = ["Http", "refusal"]
