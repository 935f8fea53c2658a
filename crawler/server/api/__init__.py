"""The HTTP API: what the web UI shows and does for programs, with bearer tokens and an OpenAPI description.

`ApiOnDemand` is the ASGI application, and `is_api_path` recognizes its requests. Responses have the names and values of
the commands' --json output; errors are problem documents (RFC 9457).
"""

from crawler.server.api.route import API_PATH, ApiOnDemand, is_api_path
