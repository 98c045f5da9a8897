"""What a plan gives each tenant, and which tenants lost keys to others since the last one.

In: two plans. Out: one line per tenant. Latency and hit rate per tenant are measured by the router, not
planned; this is the planned side of that report. Nothing is taken from a tenant silently. Source:
03-cacheroute §3.
"""

from dataclasses import dataclass

import numpy as np

from kvplan_solver.cacheroute.admission import contains
from kvplan_solver.cacheroute.counts import positive
from kvplan_solver.cacheroute.inputs import Ints, KeyRates
from kvplan_solver.cacheroute.key_plan import KeyPlan


@dataclass(frozen=True)
class TenantShare:
    """One tenant's part of a plan.

    Attributes:
        tenant: its number.
        slots: Σ k_b of its keys.
        slot_share: part of all planned slots.
        requests_per_second: planned rate of its keys.
        displaced: keys it had in the plan before that are still requested but are not in this one.
    """

    tenant: int
    slots: int
    slot_share: float
    requests_per_second: float
    displaced: int


def tenant_shares(plan: KeyPlan, measured: KeyRates, before: KeyPlan | None = None) -> tuple[TenantShare, ...]:
    """One line per tenant that has a key in the plan or lost one, ascending by tenant.

    Args:
        plan: the new plan.
        measured: the rates it was made from.
        before: the plan it replaces.
    """
    lost = _displaced(plan, measured, before)
    total = int(plan.replicas.sum())
    lines = []
    for tenant in np.union1d(plan.rates.tenant_of, lost).tolist():
        mine = plan.rates.tenant_of == tenant
        slots = int(plan.replicas[mine].sum())
        lines.append(
            TenantShare(
                tenant=int(tenant),
                slots=slots,
                slot_share=slots / total if total else 0.0,
                requests_per_second=float(plan.rates.rates[mine].sum()),
                displaced=int(np.count_nonzero(lost == tenant)),
            )
        )
    return tuple(lines)


def _displaced(plan: KeyPlan, measured: KeyRates, before: KeyPlan | None) -> Ints:
    """Tenant of every key that lost its place although it is still requested."""
    if before is None:
        return np.empty(0, dtype=np.int64)
    requested = np.sort(measured.keys[positive(measured)])
    lost = contains(requested, before.keys) & ~contains(plan.keys, before.keys)
    return np.asarray(before.rates.tenant_of[lost])
