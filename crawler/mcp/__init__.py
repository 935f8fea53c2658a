"""A read-only MCP (Model Context Protocol) server over stdin and stdout: it gives language models access to the store.

`serve` runs until the client disconnects. The tools search, text, changes and freshness call functions of crawler/app
and limit their results to sizes that a model can read. Importing this package needs the extra `mcp`.
"""

from crawler.mcp.server import serve
