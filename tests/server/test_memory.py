"""Memory limits of the web UI, which runs for weeks next to the crawler."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest

from crawler.server.ui.domain_tabs import Tab
from tests.commands import Site
from tests.server.conftest import Visitor

LIMIT_BYTES = 120e6
UNWANTED = frozenset(("fastapi", "lxml", "pypdfium2", "resiliparse", "re2", "rich", "prefect", "sqlalchemy", "alembic"))


def test_server_does_not_import_unneeded_packages() -> None:
    program = "import sys, crawler.server; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not UNWANTED & set(done.stdout.split())


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc of Linux")
def test_server_uses_less_than_120_megabytes(crawled: Site, process_visitor: Visitor) -> None:
    page = urlencode({"url": f"{crawled.url}one"})
    tabs = (f"/domain?name={crawled.name}&tab={tab.value}" for tab in Tab)
    for path in ("/", "/domains", *tabs, "/search?q=flour", "/system", "/changes", f"/page?{page}", f"/blocks?{page}"):
        assert process_visitor.get(path).status == 200
    assert process_visitor.resident() < LIMIT_BYTES


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc of Linux")
def test_server_that_shows_stored_pages_uses_less_than_100_megabytes(crawled: Site, process_visitor: Visitor) -> None:
    page = urlencode({"url": f"{crawled.url}one"})
    for path in ("/page", "/page/view", "/page/pick", "/screenshots"):
        assert process_visitor.get(f"{path}?{page}").status == 200
    assert process_visitor.resident() < LIMIT_BYTES
