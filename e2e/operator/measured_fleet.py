"""The sample fleet with every rate and length to be measured, and the traffic that it is made for.

Inputs: an operator. Output: objects applied in its namespace.
"""

import yaml

from e2e.operator.operator_process import SAMPLE, Operator

RATES = {"chat": 12.0, "code": 8.0, "summarise": 3.0}
"""Requests per second by class."""


def apply_measured(operator: Operator, solve_seconds: int = 30) -> None:
    """Apply the sample; Prometheus is asked each second and a solve begins every so many seconds."""
    documents = list(yaml.safe_load_all(SAMPLE.read_text()))
    for document in documents:
        if document["kind"] == "RequestClass":
            del document["spec"]["arrivals"], document["spec"]["outputLengths"]
        if document["kind"] == "ServingFleet":
            document["spec"]["routing"] = {"tableIntervalSeconds": 1}
            document["spec"]["replan"] = {"intervalSeconds": solve_seconds}
    operator.apply(*documents)
