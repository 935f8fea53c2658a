"""Fixtures for tests of the page reader."""

from collections.abc import Iterator

import pytest

from crawler.core.page import compiled_scan
from crawler.core.page.reader_choice import choose_reader


@pytest.fixture
def _forgotten() -> Iterator[None]:
    """Let the compiled reader be loaded again before and after a test."""
    compiled_scan.forget_library()
    yield
    choose_reader("")
    compiled_scan.forget_library()
