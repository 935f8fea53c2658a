"""The HTTP client: one request within one deadline.

`Http` sends one request with limits on sizes, times and addresses (`guard` checks each address on connection). It
returns failures of the web as values and never raises for them. `pool` keeps connections, `connection` reads responses,
`cookies` has the cookie jar of one domain. `Proxy` is an HTTP proxy, `build_ssl_context` selects the trusted
certificates. `WebhookClient` sends messages to a user's receivers. `guard_sockets` checks addresses in a process whose
libraries open their own sockets. Uses only core.
"""

from crawler.fetch.guard import NOT_AN_ADDRESS, PRIVATE, find_refusal, guard_sockets
from crawler.fetch.http_client import Http
from crawler.fetch.pool import Proxy, build_ssl_context
from crawler.fetch.webhook import WebhookClient
