"""A home that the tests of the flows and those of the stack share, because the first start in a home is the slowest."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.runtime.background_processes import ensure_tag, list_tagged
from crawler.runtime.lifecycle import stop_stack
from crawler.runtime.postgres.cluster import find_running_postgres
from tests.flows.stage import settings_of


@pytest.fixture(scope="package")
def home() -> Iterator[Path]:
    """Return the folder of a stack, which is empty at first; its stack is stopped at the end."""
    folder = Path(tempfile.mkdtemp(prefix="recrawl-stack-"))
    folder.chmod(0o755)
    yield folder
    stop_stack(settings_of(folder), report=print)
    assert list_tagged(ensure_tag(folder)) == []
    assert find_running_postgres(folder) is None
    shutil.rmtree(folder)
