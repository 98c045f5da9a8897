"""Condition types and reasons of every kind, each with the sentence that explains it.

The words are API: alerts, ``kubectl wait``, Argo CD and Flux depend on them. ``Ready``, ``Reconciling`` and
``Stalled`` follow kstatus. One setter, ``with_condition``, keeps lists ordered by type and moves the
transition time only when the status changes. Pure: the caller gives the time.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

from kvplan_operator.api.common import Condition, ConditionStatus


class Explained(StrEnum):
    """A word with a sentence that says what it means."""

    sentence: str

    def __new__(cls, word: str, sentence: str) -> Self:
        """Make the member ``word`` and keep its sentence."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.sentence = sentence
        return member


class ConditionType(Explained):
    """What a condition is about."""

    READY = "Ready", "The object is as its policy wants it."
    RECONCILING = "Reconciling", "A change is under way."
    STALLED = "Stalled", "Only a person can go on; the message says what to do."
    INVENTORY_READY = "InventoryReady", "The nodes and GPUs of the fleet are known."
    METRICS_FRESH = "MetricsFresh", "Rates and lengths are recent and complete enough to plan from."
    PLAN_FEASIBLE = "PlanFeasible", "A plan exists that keeps every constraint."
    PLAN_ACCEPTED = "PlanAccepted", "A person, git or the policy accepted a plan that may be applied."
    ROLLOUT_COMPLETE = "RolloutComplete", "The groups that run are those of the plan in force."
    TABLE_FRESH = "TableFresh", "The routers have the newest table."
    AFFINITY_ENABLED = "AffinityEnabled", "Hot keys have a fixed home."
    CONTENDED = "Contended", "Another controller writes the fields that kvplan owns."
    PROPOSED = "Proposed", "The plan was found and passed its certificate."
    ACCEPTED = "Accepted", "A person, git or the policy accepted this plan."
    APPLIED = "Applied", "This plan is in force."
    SUPERSEDED = "Superseded", "Another plan replaced this one."
    FAILED = "Failed", "Putting this plan in force failed; the message says where."


FLEET_CONDITIONS = (
    ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED, ConditionType.INVENTORY_READY,
    ConditionType.METRICS_FRESH, ConditionType.PLAN_FEASIBLE, ConditionType.PLAN_ACCEPTED,
    ConditionType.ROLLOUT_COMPLETE, ConditionType.TABLE_FRESH, ConditionType.AFFINITY_ENABLED,
    ConditionType.CONTENDED,
)  # fmt: skip
"""Conditions of a ServingFleet."""
CLASS_CONDITIONS = (
    ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED, ConditionType.METRICS_FRESH,
)  # fmt: skip
"""Conditions of a RequestClass."""
PLAN_CONDITIONS = (
    ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED, ConditionType.PROPOSED,
    ConditionType.ACCEPTED, ConditionType.APPLIED, ConditionType.SUPERSEDED, ConditionType.FAILED,
)  # fmt: skip
"""Conditions of a RoutingPlan."""


class ConditionReason(Explained):
    """Why a condition is as it is."""

    # As wanted
    AS_PLANNED = "AsPlanned", "Everything is as the plan in force says."
    PROPOSED_ONLY = "ProposedOnly", "The policy is DryRun: a plan is proposed and nothing is changed."
    AWAITING_APPROVAL = "AwaitingApproval", "A plan waits for its digest in spec.acceptedPlan."
    SUSPENDED = "Suspended", "spec.suspend stops planning and changing; what runs keeps running."
    ROLLING_OUT = "RollingOut", "A plan is being put in force, one group at a time."
    SOLVING = "Solving", "A plan is being computed."
    DIGEST_ACCEPTED = "DigestAccepted", "spec.acceptedPlan names this plan."
    POLICY_ACCEPTED = "PolicyAccepted", "The policy is Auto: what passes every gate is put in force."
    NOTHING_WRONG = "NothingWrong", "There is nothing to report."
    NOT_SELECTED = "NotSelected", "No fleet selects this class; set the label its classes.selector asks for."
    # Inventory
    GPUS_FOUND = "GpusFound", "The nodes of the fleet offer GPUs that a plan may use."
    NO_NODES = "NoNodes", "The node selector matches no node; correct spec.nodes.selector."
    NO_GPUS = "NoGpus", "The selected nodes offer no GPU under spec.nodes.gpuResource."
    CORDONED = "Cordoned", "The node takes no new pods; uncordon it to use its GPUs."
    NODE_NOT_READY = "NodeNotReady", "The node does not report Ready."
    TAINT_NOT_TOLERATED = "TaintNotTolerated", "The node has a taint that spec.nodes.tolerations lacks."
    FOREIGN_PODS = "ForeignPods", "Pods outside the fleet hold these GPUs."
    PARTITIONED_GPUS = "PartitionedGpus", "The GPUs are split (MIG) or managed by resource claims."
    OTHER_PRODUCT = "OtherProduct", "No configuration names this GPU product."
    # Measurements
    RATES_UNAVAILABLE = "RatesUnavailable", "No valid arrival rate is known; the last table stays."
    METRICS_STALE = "MetricsStale", "The newest sample is older than the window; check the scrape."
    METRICS_PARTIAL = "MetricsPartial", "Some routers or engines gave no answer."
    ROUTER_BYPASSED = "RouterBypassed", "Engines finish more requests than the routers count."
    TOO_FEW_SAMPLES = "TooFewSamples", "Too few requests were seen to know the output lengths."
    WEAK_KEY_SECRET = "WeakKeySecret", "Keys are hashed without a secret; install one."
    # Plans
    OPTIMAL = "Optimal", "The plan is within the gap target of a proven bound."
    FEASIBLE = "Feasible", "The plan keeps every constraint; the search ended before the gap target."
    DEMAND_REJECTED = "DemandRejected", "The plan rejects part of the demand; status says which and why."
    MIN_GPUS_ABOVE_BUDGET = "MinGpusAboveBudget", "spec.nodes.minGpus exceeds the GPUs that are free."
    MIN_GPUS_DO_NOT_FIT = "MinGpusDoNotFit", "No set of groups of minGpus GPUs fits the nodes."
    INPUTS_REFUSED = "InputsRefused", "No plan can be sought from these objects; the message names the field to change."
    SOLVER_FAILED = "SolverFailed", "The solver failed; the message carries its words."
    CERTIFICATE_REJECTED = "CertificateRejected", "The plan breaks a constraint that the message names."
    UNKNOWN_DIGEST = "UnknownDigest", "No RoutingPlan has the accepted digest; create it or accept another."
    STALE_PLAN = "StalePlan", "The accepted plan no longer fits the fleet; the one in force stays."
    SMALL_IMPROVEMENT = (
        "SmallImprovement",
        "The saving is below replan.minImprovementMilli or the change's cost.",
    )
    DWELLING = "Dwelling", "The partition has not yet stood for replan.minDwellSeconds."
    OUTSIDE_WINDOW = "OutsideWindow", "Cold changes wait for rollout.window."
    RESTART_BUDGET_SPENT = "RestartBudgetSpent", "replan.maxRestartsPerHour is used up."
    INVENTORY_CHANGED = "InventoryChanged", "Nodes or pods changed after the solve; a new one follows."
    # Rollout
    NO_CAPACITY_NEUTRAL_PATH = "NoCapacityNeutralPath", "No order of steps keeps rollout.minAvailableMilli."
    ROLLOUT_WOULD_DEADLOCK = "RolloutWouldDeadlock", "The Deployment needs maxSurge 0 and maxUnavailable 1."
    UNSUPPORTED_COMMAND = "UnsupportedCommand", "The container's command hides its flags in a shell."
    ADOPTION_REFUSED = "AdoptionRefused", "The named Deployment cannot run the configuration; the message says why."
    TEMPLATE_REFUSED = "TemplateRefused", "spec.engine.templateRef gives no pod template that engines can run from."
    DRAIN_UNCONFIRMED = "DrainUnconfirmed", "A router or engine did not confirm that the group is empty."
    DEADLINE_EXCEEDED = "DeadlineExceeded", "A step took longer than rollout.deadlineSeconds."
    WORSE_THAN_FORECAST = (
        "WorseThanForecast",
        "Service is worse than forecast; if that lasts, the last good plan returns (Auto) or is to be accepted.",
    )
    ROLLED_BACK = "RolledBack", "Service was worse than forecast, so the last good plan is in force again."
    REPLICAS_MANAGED_EXTERNALLY = (
        "ReplicasManagedExternally",
        "An autoscaler owns replicas; kvplan leaves them.",
    )
    FOREIGN_WRITER = "ForeignWriter", "Another controller set the fields back; make it stop."
    NEEDS_LEADER_WORKER_SET = "NeedsLeaderWorkerSet", "Groups across nodes need the LeaderWorkerSet API."
    REPLACED = "Replaced", "A newer plan is in force."
    # Tables and affinity
    TABLE_ACKNOWLEDGED = "TableAcknowledged", "Every live router has the newest table."
    TABLE_PENDING = "TablePending", "Some live router still has an older table."
    TABLE_NAME_TAKEN = (
        "TableNameTaken",
        "A ConfigMap that is not kvplan's has the name of the table; rename it, or the fleet.",
    )
    GAIN_SHOWN = "GainShown", "The measured work ratio justifies fixed homes."
    GAIN_TOO_SMALL = "GainTooSmall", "The measured work ratio does not justify fixed homes."
    GAIN_UNKNOWN = "GainUnknown", "Too little is known of prefix reuse; fixed homes stay off."
    NO_WARM_SLOTS = "NoWarmSlots", "The reservations leave no KV memory for reusable prefixes."
    SWITCHED_OFF = "SwitchedOff", "The fleet's spec switches it off."


def with_condition(
    conditions: Iterable[Condition],
    type_: ConditionType,
    status: ConditionStatus,
    reason: ConditionReason,
    message: str,
    *,
    generation: int,
    now: str,
) -> tuple[Condition, ...]:
    """The conditions with one set, ordered by type.

    Args:
        conditions: those that stand now.
        type_: what it is about.
        status: whether it holds.
        reason: why.
        message: why and what to do, for people; shortened to what the schema allows.
        generation: of the spec that was looked at.
        now: RFC 3339 time in UTC, kept only when ``status`` changes.
    """
    others = {condition.type: condition for condition in conditions}
    before = others.get(type_)
    since = before.last_transition_time if before is not None and before.status == status else now
    others[type_] = Condition(
        type=type_.value,
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=reason.value,
        message=message[:1024],
    )
    return tuple(others[name] for name in sorted(others))
