"""Fixtures of the tests on everything at once."""

from collections.abc import Iterator

import pytest

from e2e.loop.world import World

SOON_MISSED = {"LEASE_DURATION_SECONDS": "8", "LEASE_RENEW_SECONDS": "6", "LEASE_RETRY_SECONDS": "0.5"}
"""An operator that crashed is replaced within seconds; one that a busy machine holds up for seconds still leads."""


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A world of the module's own, whose operator is missed within seconds; logs stay when a test fails."""
    pytest.importorskip("kvplan_engine", reason="the engine stand-in is not installed: pip install e2e/engine")
    with World(settings=SOON_MISSED) as running:
        yield running
        if request.session.testsfailed:
            running.cluster.keep_logs()
