"""recrawl mcp, called by the client of the MCP SDK over stdin and stdout."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from crawler.errors import CrawlerError
from crawler.export.sqlite_index import SqliteIndex
from crawler.mcp.server import Tools
from crawler.runtime.machine import get_search_file
from crawler.store.database import open_database
from tests.commands import RECRAWL, Recrawl, environ, forget
from tests.engine.crawls import register
from tests.engine.static import StaticServer
from tests.patience import PATIENCE_S


@asynccontextmanager
async def session(database_url: str, home: Path) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(command=str(RECRAWL), args=["mcp"], env=environ(database_url, home))
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as client:
        await client.initialize()
        yield client


def said(result: CallToolResult) -> list[Any]:
    assert not result.is_error, result.content
    return [json.loads(each.text) for each in result.content if isinstance(each, TextContent)]


@pytest.fixture
def changed_site(recrawl: Recrawl, tmp_path: Path) -> str:
    """Return the URL of a site that was crawled twice, with a change between."""
    root = tmp_path / "site"
    root.mkdir()
    page = "<title>Wool</title><h1>Prices</h1><p>Wool costs four crowns a pound this week, and no less."
    (root / "index.html").write_text(page)
    with StaticServer(root) as site:
        for arguments in (("crawl", site.url, "--allow-private"), ("refresh", site.url), ("crawl", site.url)):
            done = recrawl(*arguments)
            assert done.code == 0, done.err
            (root / "index.html").write_text(page.replace("four", "nine"))
        assert recrawl("tags", "add", "wool", site.url).code == 0
        return site.url


async def test_tools_return_hits_texts_changes_and_freshness(
    changed_site: str, database_url: str, tmp_path: Path
) -> None:
    async with session(database_url, tmp_path) as client:
        tools = (await client.list_tools()).tools
        [hit] = said(await client.call_tool("search", {"words": "wool pound"}))
        [now] = said(await client.call_tool("text", {"url": hit["url"]}))
        [then] = said(await client.call_tool("text", {"url": hit["url"], "version": 1, "offset": 5}))
        [changes] = said(await client.call_tool("changes", {"what": changed_site}))
        [none] = said(await client.call_tool("changes", {"days": 0}))
        ahead = await client.call_tool("changes", {"after": 1000})
        [report] = said(await client.call_tool("freshness", {}))
        [tagged] = said(await client.call_tool("freshness", {"tag": "wool"}))
        [of_tag] = said(await client.call_tool("changes", {"tag": "wool"}))
        unknown = await client.call_tool("changes", {"tag": "none"})
        wrong = await client.call_tool("text", {"url": "http://nowhere.example/"})

    assert {tool.name for tool in tools} == {"search", "text", "changes", "freshness"}
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
    assert "[Wool]" in hit["excerpt"]
    assert ("nine crowns" in now["text"], now["version"], now["next_offset"]) == (True, 2, None)
    assert ("four crowns" in then["text"], then["text"].startswith("Wool")) == (True, False)
    assert [each["change"] for each in changes["changes"]] == ["added", "changed"]
    assert none == {"changes": [], "next": changes["next"]}
    assert (ahead.is_error, "before cursor 1000" in str(ahead.content)) == (True, True)
    assert "nine crowns" in changes["changes"][1]["blocks"][0]["after"]
    assert (report["fetched"], report["freshness"] > 0) == (1, True)
    assert (tagged["domain"], of_tag) == (report["domain"], changes)
    assert (unknown.is_error, "there is no tag none" in str(unknown.content)) == (True, True)
    assert wrong.is_error
    assert "is not registered" in str(wrong.content)


async def test_search_with_slow_index_reports_so_and_continues_in_background(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ(database_url, tmp_path).items():
        monkeypatch.setenv(name, value)
    forget()
    async with open_database(database_url) as db:
        await register(db, "http://127.0.0.1:9/")
    tools = Tools(search_timeout=timedelta(milliseconds=50))
    async with tools.open_store():
        async with SqliteIndex(get_search_file(tmp_path)).sync_lock():  # as while another process builds the index
            for _ in range(2):
                with pytest.raises(CrawlerError, match="still being built: search again"):
                    await tools.search("wool")
        tools = Tools(search_timeout=timedelta(seconds=PATIENCE_S))
        async with tools.open_store():
            assert await tools.search("wool") == []
    forget()


@pytest.mark.soak  # tests/test_extras.py covers it with the other extras
def test_without_the_sdk_the_command_says_what_to_install() -> None:
    program = """if True:
        import sys
        sys.modules["mcp"] = None  # as without the extra
        import crawler.server
        from crawler.app import open_app
        from crawler.cli import main
        sys.argv = ["recrawl", "mcp"]
        sys.exit(main())
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    why = "recrawl: recrawl mcp needs the extra mcp, which is not installed: run `"
    assert done.stderr.startswith(why)
    assert len(done.stderr.splitlines()) == 1
