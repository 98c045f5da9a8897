"""The three kinds: their types, names and the columns that ``kubectl get`` prints. Pure data."""

from dataclasses import dataclass

from kvplan_operator.api.base import ApiModel
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import GROUP
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan


@dataclass(frozen=True)
class Column:
    """One printed column.

    Attributes:
        name: heading.
        path: JSON path of the value.
        type: string, integer or date.
        description: what the value says.
        wide: whether only ``-o wide`` prints it.
    """

    name: str
    path: str
    description: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True)
class Kind:
    """One kind of the API group."""

    model: type[ApiModel]
    plural: str
    short_name: str
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """The kind, for example ServingFleet."""
        return self.model.__name__

    @property
    def crd_name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{GROUP}"


def _condition(type_: str, field: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


_READY = Column("Ready", _condition("Ready"), "Whether the object is as its policy wants it.")
_REASON = Column("Reason", _condition("Ready", "reason"), "Why it is or is not Ready.")
_MESSAGE = Column("Message", _condition("Ready", "message"), "What to do about it.", wide=True)
_AGE = Column("Age", ".metadata.creationTimestamp", "Time since creation.", type="date")

KINDS = (
    Kind(
        ServingFleet, "servingfleets", "fleet",
        (
            _READY,
            _REASON,
            Column("Policy", ".spec.planPolicy.mode", "Who decides that a plan is applied."),
            Column("Plan", ".status.currentPlan.name", "The plan in force."),
            Column("Candidate", ".status.candidatePlan.name", "The plan that waits for a decision."),
            Column(
                "Saves", ".status.candidatePlan.improvementMilli",
                "Saving of the candidate, in thousandths of the cost.", type="integer",
            ),
            Column("GPUs", ".status.gpus.used", "GPUs that the groups hold.", type="integer"),
            Column("Of", ".status.gpus.allocatable", "GPUs that the nodes offer.", type="integer"),
            _AGE,
            Column("Digest", ".status.candidatePlan.digest", "What to accept.", wide=True),
            _MESSAGE,
        ),
    ),
    Kind(
        RequestClass, "requestclasses", "rclass",
        (
            Column("Fleet", ".status.fleet", "The fleet it belongs to."),
            _READY,
            _REASON,
            Column(
                "Rate-Milli", ".status.requestsPerSecondMilli",
                "Arrival rate in thousandths of a request per second.", type="integer",
            ),
            Column("SLO-ms", ".spec.slo.latencyMilliseconds", "Bound on the mean.", type="integer"),
            Column("P99-ms", ".status.observed.p99Milliseconds", "Response time seen.", type="integer"),
            Column("Reserved", ".status.reservationTokens", "KV tokens per request.", type="integer"),
            Column("Data", ".status.freshness", "How far the measurements can be trusted."),
            _AGE,
            _MESSAGE,
        ),
    ),
    Kind(
        RoutingPlan, "routingplans", "rplan",
        (
            Column("Fleet", ".spec.fleetName", "The fleet it is for."),
            Column("Accepted", _condition("Accepted"), "Whether people or the policy accepted it."),
            Column("Applied", _condition("Applied"), "Whether it is in force."),
            _REASON,
            Column("Step", ".status.rollout.step", "Steps of the rollout done.", type="integer"),
            Column("Of", ".status.rollout.steps", "Steps in all.", type="integer"),
            Column("Waiting-For", ".status.rollout.waitingFor", "What the step waits for."),
            Column("Gap-Milli", ".status.objective.gapMilli", "Distance to the bound.", type="integer"),
            _AGE,
            Column(
                "Cost-Milli", ".status.objective.costs.totalMilli",
                "Cost per second in thousandths.", type="integer", wide=True,
            ),
            _MESSAGE,
        ),
    ),
)  # fmt: skip
"""Every kind, in the order of their documents."""
