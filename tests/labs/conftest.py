"""Fixtures for the commands of `python -m labs`."""

from functools import partial

import pytest

from labs.__main__ import main
from tests.commands import Recrawl


@pytest.fixture
def labs(recrawl: Recrawl) -> Recrawl:
    return partial(recrawl, main=main)
