"""One living site for the tests that only look at it."""

from datetime import UTC, datetime

import pytest

from labs.demo.site import Site, make_site

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="session")
def site() -> Site:
    return make_site(1, start=START)
