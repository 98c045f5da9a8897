"""From a plan and measured key rates to the key planner's input, and to the index and shards on the wire.

Inputs: a ``Planned`` (made or assessed), rates of hashed keys, the destinations. Outputs: what
``kvplan_solver.cacheroute`` plans from, its plan, and the encoded table. Budgets are joint with the
reservations (03-cacheroute §1): keys of a class live only where π sends the class, a destination's planned
load follows π, and warm prefixes get what the reservations leave. Routers count keys by hash; ``raw_keys``
hashes those that come as text. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kvplan_operator.api.fleet_enums import Admission, Affinity
from kvplan_operator.plan.index_head import Slot, TableVersion, index_head, slots_of
from kvplan_operator.plan.planned import Planned
from kvplan_solver.cacheroute.capacity import (
    KV_SHARE_MAX,
    KeyCapacity,
    rate_weighted_tokens,
    warm_slots,
)
from kvplan_solver.cacheroute.inputs import Admission as KeyAdmission
from kvplan_solver.cacheroute.inputs import Fleet, KeyRates, Settings, key_rates
from kvplan_solver.cacheroute.joint import joint_fleet
from kvplan_solver.cacheroute.key_plan import KeyPlan
from kvplan_solver.cacheroute.keys import to_hex
from kvplan_solver.cacheroute.plan import plan_keys
from kvplan_solver.cacheroute.publish import table_keys
from kvplan_solver.cacheroute.replan import replan_keys
from kvplan_solver.cacheroute.table.encode import EncodedTable, encode_table
from kvplan_solver.cost import Coefficients
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Floats
from kvplan_solver.memory import concurrency, memory_tokens
from kvplan_solver.units import from_milli


class KeyRate(NamedTuple):
    """One measured key.

    Attributes:
        class_name: RequestClass it belongs to.
        key: 64-bit hash.
        requests_per_second: λ_b.
        error_per_second: bound of its measurement error.
        reusable_tokens: prefix that requests of the key share, tokens; None where unknown.
    """

    class_name: str
    key: int
    requests_per_second: float
    error_per_second: float = 0.0
    reusable_tokens: float | None = None


@dataclass(frozen=True, eq=False)
class TableInput:
    """What the key planner takes, and how its budgets came about.

    Attributes:
        rates: measured keys, hashed.
        fleet: the destinations (slots) with their budgets.
        settings: how to plan.
        capacity: q_cap with the knee it comes from; None where the fleet's spec sets it.
        notes: what a reader must know, a sentence each.
    """

    rates: KeyRates
    fleet: Fleet
    settings: Settings
    capacity: KeyCapacity | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PlannedTable:
    """A table ready to publish: the planned keys and their wire form."""

    input: TableInput
    keys: KeyPlan
    encoded: EncodedTable


def table_input(planned: Planned, rates: Sequence[KeyRate], slots: Sequence[Slot] | None = None) -> TableInput:
    """The key planner's input.

    Args:
        planned: the plan in force.
        rates: key rates; keys of classes that the plan does not have are an error.
        slots: the destinations that may hold keys; those of the plan where absent.

    Raises:
        InvalidInput: an unknown class, a repeated key, no destination, or budgets that nothing determines.
    """
    chosen = slots_of(planned.plan) if slots is None else tuple(slots)
    if not chosen:
        subject = f"RoutingPlan {planned.plan.metadata.name}"
        raise InvalidInput(subject, "spec.groups", 0, "plan at least one group: a table needs destinations")
    return _Builder(planned, rates, chosen).build()


def plan_table(
    planned: Planned,
    rates: Sequence[KeyRate],
    fingerprint: str,
    version: TableVersion,
    before: KeyPlan | None = None,
) -> PlannedTable:
    """Plan the keys and write the table on the plan's own slots.

    Args:
        planned: the plan in force.
        rates: key rates.
        fingerprint: of the secret that the keys are hashed under, 16 hex digits.
        version: epoch and generation of the index.
        before: the key plan in force, whose homes are kept as far as balance allows.

    Raises:
        InvalidInput: see ``table_input``; or an index too large for a ConfigMap.
    """
    made = table_input(planned, rates)
    keys = plan_or_replan(made, before)
    head = index_head(planned, fingerprint, version)
    encoded = encode_table(planned.problem.fleet.metadata.name, head, table_keys(keys))
    return PlannedTable(made, keys, encoded)


def plan_or_replan(made: TableInput, before: KeyPlan | None) -> KeyPlan:
    """From scratch, or next to the plan in force."""
    if before is None:
        return plan_keys(made.rates, made.fleet, made.settings)
    return replan_keys(made.rates, made.fleet, made.settings, before)


def unknown_class(key: str, class_name: str, known: Iterable[str]) -> InvalidInput:
    """The error of a key whose class is not planned."""
    return InvalidInput(f"key {key}", "class", class_name, f"use one of the classes {', '.join(known)}")


def free_tokens(planned: Planned) -> Floats:
    """KV tokens of one group that warm prefixes may take: min(0.7·M_k, what the reservations leave), length K."""
    capacity = np.array([float(k.kv_capacity_tokens) for k in planned.instance.configurations])
    return np.minimum(KV_SHARE_MAX * capacity, np.maximum(0.0, capacity - reserved_tokens(planned)))


def reserved_tokens(planned: Planned) -> Floats:
    """KV tokens of one group that the reservations hold, left side of (6e), length K."""
    constants = Coefficients(planned.instance)
    rates = planned.result.routing * constants.rates[:, None]
    z = np.array(planned.result.groups, dtype=np.float64)
    reservation = np.array(planned.result.reservation_tokens, dtype=np.float64)
    in_flight = concurrency(rates, constants.T, z)
    return memory_tokens(planned.instance, in_flight, reservation, planned.result.cached)


class _Builder:
    """Collects notes while the budgets are worked out."""

    def __init__(self, planned: Planned, rates: Sequence[KeyRate], slots: Sequence[Slot]) -> None:
        self.planned, self.slots = planned, slots
        self.instance, self.result = planned.instance, planned.result
        self.routing = planned.problem.fleet.spec.routing
        self.class_numbers = {c.name: i for i, c in enumerate(self.instance.classes)}
        off = self.routing.affinity is Affinity.OFF
        self.rows: Sequence[KeyRate] = () if off else rates
        self.notes = ["routing.affinity is Off: no key gets a fixed home"] if off else []

    def build(self) -> TableInput:
        """Rates, destinations and settings."""
        rates = self._rates()
        warm = self._warm_slots(rates)
        fleet = self._fleet(warm, rates)
        capacity = None if self.routing.q_cap_requests_per_second_milli else self._capacity(fleet)
        return TableInput(rates, fleet, self._settings(capacity), capacity, tuple(self.notes))

    def _rates(self) -> KeyRates:
        class_of = [self._class_of(row) for row in self.rows]
        tokens = self._reusable_tokens(class_of)
        tenants = self._tenants()
        return key_rates(
            [row.key for row in self.rows],
            [row.requests_per_second for row in self.rows],
            errors=[row.error_per_second for row in self.rows],
            class_of=class_of,
            tenant_of=[tenants[i] for i in class_of],
            size_bytes=tokens,
            saved_seconds=tokens * self._prefill_seconds_per_token(),
        )

    def _class_of(self, row: KeyRate) -> int:
        number = self.class_numbers.get(row.class_name)
        if number is None:
            raise unknown_class(to_hex(row.key), row.class_name, self.class_numbers)
        return number

    def _tenants(self) -> list[int]:
        """Tenant of each class by number; classes without one share number 0."""
        tenants = [c.spec.tenant for c in self.planned.problem.classes]
        names = sorted({tenant for tenant in tenants if tenant})
        return [names.index(tenant) + 1 if tenant else 0 for tenant in tenants]

    def _reusable_tokens(self, class_of: Sequence[int]) -> Floats:
        """Reusable prefix by row; the class's shared prefix is the least a key can reuse."""
        unknown = sum(row.reusable_tokens is None for row in self.rows)
        if unknown:
            self.notes.append(f"{unknown} keys have unknown reusable tokens: their class's shared prefix is taken")
        shared = [float(c.shared_prefix_tokens) for c in self.instance.classes]
        rows = zip(self.rows, class_of, strict=True)
        tokens = [shared[i] if row.reusable_tokens is None else row.reusable_tokens for row, i in rows]
        return np.array(tokens, dtype=np.float64)

    def _prefill_seconds_per_token(self) -> float:
        """Mean over the groups of the plan."""
        groups = np.array(self.result.groups, dtype=np.float64)
        speeds = np.array([k.prefill_seconds_per_token for k in self.instance.configurations])
        return float(groups @ speeds / groups.sum())

    def _warm_slots(self, rates: KeyRates) -> list[int]:
        if self.routing.warm_slots_per_destination is not None:
            return [self.routing.warm_slots_per_destination] * len(self.instance.configurations)
        good = np.isfinite(rates.rates) & (rates.rates > 0)
        reusable = rate_weighted_tokens(rates.size_bytes[good], rates.rates[good])
        if reusable <= 0:
            self.notes.append("no key reuses a prefix: nothing is worth keeping warm")
            return [0] * len(self.instance.configurations)
        reserved = reserved_tokens(self.planned)
        return [
            warm_slots(k.kv_capacity_tokens, float(reserved[n]), reusable)
            for n, k in enumerate(self.instance.configurations)
        ]

    def _fleet(self, warm: Sequence[int], rates: KeyRates) -> Fleet:
        numbers = {k.name: n for n, k in enumerate(self.instance.configurations)}
        slots = [(slot.name, numbers[slot.configuration]) for slot in self.slots]
        class_rates = [c.arrival_rate for c in self.instance.classes]
        fleet = joint_fleet(slots, self.result.routing, class_rates, warm, rates)
        free = free_tokens(self.planned)
        by_slot = {name: float(free[k]) for name, k in slots}
        # Sizes and limits are both in tokens: their ratio is all that byte-wise admission needs.
        return replace(fleet, byte_limits=np.array([by_slot[name] for name in fleet.destinations]))

    def _capacity(self, fleet: Fleet) -> KeyCapacity:
        """The knee by equation (7) until one is measured: the rate at which a request waits as long as it runs."""
        constants = Coefficients(self.instance)
        rates = self.result.routing * constants.rates[:, None]
        carried = rates.sum(axis=0)
        used = carried > 0
        if not used.any():
            raise InvalidInput("key planner", "plan", "no class is admitted", "a table needs routes: serve one")
        mean_seconds = (rates * constants.T).sum(axis=0)[used] / carried[used]
        u = np.minimum(self.instance.max_utilisation, constants.slots / (constants.slots + constants.v))[used]
        knee = float((u * constants.slots[used] / mean_seconds).min())
        total = float(fleet.weights.sum())
        cold = min(0.999, float(fleet.cold_load.sum()) / total) if total > 0 else 0.0
        self.notes.append(
            f"q_cap comes from an estimated knee of {knee:.4g} requests per second: an error beyond 25 % costs "
            "balance or hits, so set routing.qCapRequestsPerSecondMilli once latency against rate is measured"
        )
        return KeyCapacity(knee, cold)

    def _settings(self, capacity: KeyCapacity | None) -> Settings:
        by_bytes = self.routing.admission is Admission.BYTES
        return Settings(
            q_cap=capacity.q_cap if capacity else from_milli(self.routing.q_cap_requests_per_second_milli or 0),
            admission=KeyAdmission.BYTES if by_bytes else KeyAdmission.SLOTS,
            epsilon=from_milli(self.routing.churn.epsilon_milli),
            knee=None if capacity is None else capacity.knee,
        )
