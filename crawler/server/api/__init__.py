"""The HTTP API: what the web UI shows, for programs; read-only, behind bearer tokens, described by OpenAPI.

`ApiOnDemand` is the API as a part of the application of the pages, `is_api_path` tells which requests belong to it.
Answers have the names and values of the command's --json; errors are problem documents (RFC 9457).
"""

from crawler.server.api.route import API_PATH, ApiOnDemand, is_api_path
