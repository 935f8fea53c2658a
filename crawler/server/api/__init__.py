"""The HTTP API: what the pages say, for programs; read-only, behind bearer tokens, described by OpenAPI.

`api_routes` gives its routes to the application of the pages, `beneath_api` says which requests are its own. An answer
has the names and values of the command's --json; what is wrong is a problem document (RFC 9457). It calls the store's
reports as the command does, and nothing of the pages.
"""

from crawler.server.api.routes import api_routes, beneath_api
