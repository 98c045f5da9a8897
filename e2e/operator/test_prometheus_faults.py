"""Prometheus is down, slow, empty or talks nonsense: the plan in force stays, and the fleet says what is wrong.

Rates and lengths of every class are measured; nothing is stated. An operator that starts in such a moment remembers
nothing, which is the worst case.
"""

from collections.abc import Iterator

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.operator.fake_traffic import FAULTS, Traffic, prometheus
from e2e.operator.measured_fleet import RATES, apply_measured
from e2e.operator.operator_process import FLEET, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]


@pytest.fixture
def traffic() -> Iterator[Traffic]:
    """A Prometheus with the sample's traffic."""
    with prometheus(Traffic(rates=RATES)) as started:
        yield started


@pytest.fixture
def operator(cluster: Cluster, namespace: str, traffic: Traffic) -> Iterator[Operator]:
    """An operator whose fleet has a plan in force that was made from measurements."""
    settings = {"PROMETHEUS_URL": traffic.url, "PROMETHEUS_TIMEOUT_SECONDS": "1"}
    started = Operator(cluster, namespace, **settings)
    apply_measured(started)
    started.wait_for_candidate()
    started.accept(started.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])
    started.wait_for("Ready", "AsPlanned")
    yield started
    started.process.stop()


def in_force(operator: Operator) -> tuple[str, set[str], set[str]]:
    """Plan, engines and what the table says of routes."""
    fleet = operator.get("fleet", FLEET)
    pods = {pod["metadata"]["uid"] for pod in operator.get("pods")["items"]}
    ready = {c["reason"] for c in fleet["status"]["conditions"] if c["type"] == "Ready"}
    return fleet["status"]["currentPlan"]["digest"], pods, ready


def restart(operator: Operator) -> None:
    """Nothing is remembered by a new process."""
    operator.process.stop()
    operator.process.start()


def test_the_last_good_plan_stays_whatever_prometheus_does_and_all_is_well_when_it_is(
    operator: Operator, traffic: Traffic
) -> None:
    before = in_force(operator)
    table = operator.get("configmap", f"{FLEET}-table")["data"]["index.json"]
    for fault in FAULTS.values():
        traffic.fault = fault
        restart(operator)
        operator.wait_for("MetricsFresh", "RatesUnavailable")
        assert in_force(operator) == before
        traffic.fault = None
        operator.wait_for("MetricsFresh", "AsPlanned")
        assert in_force(operator) == before
    assert operator.get("configmap", f"{FLEET}-table")["data"]["index.json"] == table


def test_while_prometheus_is_slow_an_edit_is_still_seen(operator: Operator, traffic: Traffic) -> None:
    traffic.fault = FAULTS["it says nothing in time"]
    asked = traffic.asked
    until(lambda: traffic.asked > asked, "a query that waits", operator.process)
    operator.change({"suspend": True})
    operator.wait_for("Ready", "Suspended", seconds=15)


def test_a_store_that_is_missing_is_told_in_its_own_words(operator: Operator, traffic: Traffic) -> None:
    before = in_force(operator)
    traffic.warnings = ("store-gateway 2 did not answer",)
    operator.wait_for("MetricsFresh", "MetricsPartial")
    said = next(c for c in operator.get("fleet", FLEET)["status"]["conditions"] if c["type"] == "MetricsFresh")
    assert "store-gateway 2 did not answer" in said["message"]
    traffic.warnings = ()
    operator.wait_for("MetricsFresh", "AsPlanned")
    assert in_force(operator) == before


def test_no_traffic_is_a_number_and_no_fault(operator: Operator, traffic: Traffic) -> None:
    before = in_force(operator)
    traffic.rates = dict.fromkeys(RATES, 0.0)
    rates = "--output=jsonpath={.items[*].status.requestsPerSecondMilli}"
    place = f"--namespace={operator.namespace}"
    until(
        lambda: operator.cluster.kubectl("get", "rclass", place, rates).split() == ["0"] * len(RATES),
        "rates of nothing", operator.process,
    )  # fmt: skip
    operator.wait_for("MetricsFresh", "AsPlanned")
    assert in_force(operator) == before


@pytest.mark.slow
def test_measurements_that_grow_old_are_called_stale_and_then_fresh_again(operator: Operator, traffic: Traffic) -> None:
    before = in_force(operator)
    traffic.fault = FAULTS["it is down"]
    operator.wait_for("MetricsFresh", "MetricsStale", seconds=200)
    assert in_force(operator) == before
    traffic.fault = None
    operator.wait_for("MetricsFresh", "AsPlanned")
