"""LOOKS: one request, one deadline.

`Http` sends one GET or HEAD with all sizes, times and addresses bounded (`guard` checks each address when it
connects) and answers with a value, never an exception of the web. `DomainCookies` is what one domain has it keep, a
`Proxy` the way to it, `build_ssl_context` whom it believes. `WebhookClient` sends messages to receivers that a user has
named; `guard_sockets` checks the addresses of a process whose libraries open their own sockets. Uses core alone; it
never meets the store.
"""

from crawler.fetch.connection import Proxy, build_ssl_context
from crawler.fetch.guard import NOT_AN_ADDRESS, PRIVATE, find_refusal, guard_sockets
from crawler.fetch.http import DomainCookies, Http
from crawler.fetch.webhook import WebhookClient
