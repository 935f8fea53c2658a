"""recrawl mcp: its help."""

from crawler.cli.options import Json
from crawler.errors import BadInput, CrawlerError


def mcp(as_json: Json = False) -> None:
    """Serve the store to a language model, by the Model Context Protocol on stdin and stdout, until stdin ends.

    Its tools are search, text, changes and freshness; all of them only read. Needs the extra mcp (docs/mcp.md). The
    client starts this command itself: put it where that lists its servers. What it says is JSON anyway.

    Examples:

        recrawl mcp
    """
    if as_json:
        raise BadInput("recrawl mcp speaks JSON-RPC as it is: leave --json out")
    try:
        from crawler.mcp import serve
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise CrawlerError(
            "recrawl mcp needs the MCP SDK, which is not installed: make setup-extras EXTRAS=mcp installs it in a"
            " checkout; build an image with --build-arg EXTRAS=mcp"
        ) from error
    serve()
