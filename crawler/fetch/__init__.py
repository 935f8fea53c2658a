"""The HTTP client: one request within one deadline.

`Http` sends one request with limits on sizes, times and addresses (`guard` checks each address on connection). It
returns failures of the web as values and never raises for them. `DomainCookies` is the cookie jar of one domain,
`Proxy` an HTTP proxy, `build_ssl_context` selects the trusted certificates. `WebhookClient` sends messages to a user's
receivers. `guard_sockets` checks addresses in a process whose libraries open their own sockets. Uses only core.
"""

from crawler.fetch.connection import Proxy, build_ssl_context
from crawler.fetch.guard import NOT_AN_ADDRESS, PRIVATE, find_refusal, guard_sockets
from crawler.fetch.http_client import DomainCookies, Http
from crawler.fetch.webhook import WebhookClient
