"""Fixtures of the tests on everything at once."""

from collections.abc import Iterator

import pytest

from e2e.loop.world import World


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A world of the module's own; logs stay when a test fails."""
    pytest.importorskip("kvplan_engine", reason="the engine stand-in is not installed: pip install e2e/engine")
    with World() as running:
        yield running
        if request.session.testsfailed:
            running.cluster.keep_logs()
