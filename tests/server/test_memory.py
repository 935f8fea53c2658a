"""The server of the pages runs for weeks beside everything else: what it takes, and what it leaves to others."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.commands import Site
from tests.server.conftest import Visitor

BAR_BYTES = 100e6
UNWANTED = ("aiohttp", "fastapi", "lxml", "pypdfium2", "resiliparse", "re2", "rich", "prefect", "sqlalchemy", "alembic")


def test_what_pages_do_not_need_is_not_imported_with_them() -> None:
    program = "import sys, crawler.server; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(UNWANTED) & set(done.stdout.split())


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells what a process has")
def test_the_server_takes_less_than_100_megabytes(crawled: Site, visitor: Visitor) -> None:
    page = urlencode({"url": f"{crawled.url}one"})
    for path in ("/", f"/domain?name={crawled.name}", "/changes", f"/page?{page}", f"/pieces?{page}"):
        assert visitor.get(path).status == 200
    assert visitor.resident() < BAR_BYTES
