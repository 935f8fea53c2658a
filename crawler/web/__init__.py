"""LOOKS: one request, one deadline.

`Http` sends one GET or HEAD with all sizes, times and addresses bounded (`guard` checks each address when it
connects) and answers with a value, never an exception of the web. `DomainCookies` is what one domain has it keep, a
`Proxy` the way to it, `trust_of` whom it believes. `WebhookClient` sends messages to receivers that a user has named.
Uses core alone; it never meets the store.
"""

from crawler.web.cookies import DomainCookies
from crawler.web.guard import refusal
from crawler.web.http import Http
from crawler.web.proxy import Proxy
from crawler.web.trust import trust_of
from crawler.web.webhook import WebhookClient

__all__ = ["DomainCookies", "Http", "Proxy", "WebhookClient", "refusal", "trust_of"]
