"""Tests that share a stack run in one worker; otherwise every worker would start one, and nobody would notice."""

import pytest


@pytest.mark.xdist_group("group")
def test_workers_are_told_which_tests_belong_together(request: pytest.FixtureRequest) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("tests are not grouped in this run: make test groups them")
    assert request.node.nodeid.endswith("@group")
