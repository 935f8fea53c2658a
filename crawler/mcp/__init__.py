"""The store for language models: an MCP server over stdin and stdout, whose tools only read.

`serve` runs until its client goes. Its tools are verbs of crawler/app: search, text, changes, freshness, with answers
that are cut to what a model can read. Importing this room needs the extra `mcp`; nothing else imports it.
"""

from crawler.mcp.server import serve
