"""Fixtures of the tests on a real data plane: Envoy, the router, upstreams on loopback."""

from collections.abc import Iterator

import pytest

from e2e.coroutines import loop, pytest_pyfunc_call  # noqa: F401 - pytest finds them here
from e2e.router.bed import Bed
from e2e.router.parts import Layout


@pytest.fixture(scope="module")
def layout() -> Layout:
    """What the module's bed consists of; a module that needs another overrides this."""
    return Layout()


@pytest.fixture(scope="module")
def bed(request: pytest.FixtureRequest, layout: Layout) -> Iterator[Bed]:
    """A data plane, shared by the module; its logs stay when a test fails."""
    with Bed(layout) as running:
        yield running
        if request.session.testsfailed:
            running.keep_logs()


@pytest.fixture
def calm(bed: Bed) -> Iterator[None]:
    """The plain table before the test, and nothing in flight after it."""
    bed.publish(bed.table.next(homes={}, draining=frozenset(), budget_tokens=1_000_000, classes=bed.plain.classes))
    yield
    bed.until(lambda: not bed.in_flight(), "nothing in flight")
