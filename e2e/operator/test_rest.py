"""At rest nothing is written but Leases: constant traffic, and traffic that a Prometheus tells with noise of 5 %."""

from collections.abc import Iterator

import pytest

from e2e.harness.cluster import Cluster
from e2e.operator.fake_traffic import Traffic, prometheus
from e2e.operator.measured_fleet import RATES, apply_measured
from e2e.operator.operator_process import FLEET, Operator, Write

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

NOISE = 0.05
REST = {"as long as CI has": 90, "ten minutes": 600}


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator that asks a Prometheus with noise each second, and solves anew every half minute."""
    with prometheus(Traffic(rates=RATES, noise=NOISE)) as traffic:
        started = Operator(cluster, namespace, PROMETHEUS_URL=traffic.url)
        apply_measured(started)
        started.wait_for_candidate()
        started.accept(started.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])
        started.wait_for("Ready", "AsPlanned")
        yield started
        started.process.stop()


@pytest.mark.parametrize(
    "seconds", [REST["as long as CI has"], pytest.param(REST["ten minutes"], marks=pytest.mark.slow)]
)
def test_noise_of_five_percent_causes_no_write(operator: Operator, seconds: int) -> None:
    operator.process.wait(10)  # events of the last transitions, and the routing that follows the first measurements
    start = operator.audit_position()
    assert not operator.process.wait(seconds)
    written: list[Write] = list(operator.writes_since(start))
    assert written == []
