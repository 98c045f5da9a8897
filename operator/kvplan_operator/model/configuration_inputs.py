"""The fleet's configurations as the solver takes them, each number from the most trusted source.

Inputs: the fleet, its inventory, what its groups were measured to do, the mean reservation. Outputs: solver
configurations with their speed curves and sources, and the configurations that cannot run, with the reason.
Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_engine import Configuration
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.priors.formula import Assumptions
from kvplan_operator.model.priors.models import uneven_heads
from kvplan_operator.model.priors.resolve import (
    Measurement,
    PriorRequest,
    ResolvedConfiguration,
    UnusableConfiguration,
    configuration_input,
    resolve_configuration,
)
from kvplan_solver.budget import floor_to_block
from kvplan_solver.errors import InvalidInput
from kvplan_solver.fixed_point import ASSUMED_BATCH
from kvplan_solver.instance import ConfigurationInput
from kvplan_solver.speed_curve import SpeedCurve
from kvplan_solver.units import from_milli


@dataclass(frozen=True, eq=False)
class Candidates:
    """Configurations that can run, in the fleet's order, and those that cannot.

    Attributes:
        inputs: for the solver, at an assumed batch.
        resolved: their sources, in the same order.
        unusable: name and reason of the others.
    """

    inputs: tuple[ConfigurationInput, ...]
    resolved: tuple[ResolvedConfiguration, ...]
    unusable: tuple[tuple[str, str], ...]

    @property
    def curves(self) -> dict[str, SpeedCurve]:
        """Speeds over the batch by configuration name."""
        return {resolved.configuration.name: resolved.curve for resolved in self.resolved}


def candidates(
    fleet: ServingFleet,
    inventory: Inventory,
    measured: Mapping[str, Measurement],
    mean_reservation_tokens: float,
) -> Candidates:
    """What the fleet's configurations can do.

    Raises:
        InvalidInput: none can run, a product is ambiguous, or a model, preset or product is unknown.
    """
    resolved: list[ResolvedConfiguration] = []
    unusable: list[tuple[str, str]] = []
    for configuration in fleet.spec.configurations:
        found = _resolve(fleet, configuration, inventory, measured, mean_reservation_tokens)
        if isinstance(found, ResolvedConfiguration):
            resolved.append(found)
        else:
            unusable.append((configuration.name, found))
    if not resolved:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in unusable)
        subject = f"ServingFleet {fleet.metadata.name}"
        names = [name for name, _ in unusable]
        raise InvalidInput(subject, "spec.configurations", names, f"none can run: {reasons}")
    block = fleet.spec.engine.block_tokens
    return Candidates(tuple(_input(found, block) for found in resolved), tuple(resolved), tuple(unusable))


def _resolve(
    fleet: ServingFleet,
    configuration: Configuration,
    inventory: Inventory,
    measured: Mapping[str, Measurement],
    mean_reservation_tokens: float,
) -> ResolvedConfiguration | str:
    product = configuration.gpu_product or _only_product(fleet, configuration, inventory)
    if configuration.gpu_product and product not in inventory.products:
        seen = ", ".join(inventory.products) or "unlabelled GPUs"
        return f"no usable node has its gpuProduct {product}; the nodes have {seen}"
    if configuration.span_nodes and configuration.pipeline_parallel > 1 and not inventory.groups_may_span:
        return "its groups may span nodes: install LeaderWorkerSet, or set spanNodes to false"
    odd = uneven_heads(fleet.spec.model, configuration.tensor_parallel)
    if odd:
        return odd
    request = PriorRequest(
        model=fleet.spec.model,
        configuration=configuration,
        gpu_product=product,
        gpu_preset=fleet.spec.nodes.gpu_preset,
        measured=measured.get(configuration.name, Measurement()),
        mean_reservation_tokens=mean_reservation_tokens,
        headroom=from_milli(fleet.spec.objective.headroom_milli),
        assumptions=Assumptions(memory_utilisation=from_milli(fleet.spec.engine.gpu_memory_utilization_milli)),
    )
    try:
        found = resolve_configuration(request)
    except InvalidInput as error:
        raise InvalidInput(f"ServingFleet {fleet.metadata.name}", *_blamed(error)) from error
    return found.reason if isinstance(found, UnusableConfiguration) else found


def _blamed(error: InvalidInput) -> tuple[str, object, str]:
    """Field, value and remedy of what the priors refuse; what is no field of the fleet keeps its own subject."""
    field = error.field if error.field.startswith("spec.") else f"{error.subject} {error.field}"
    return field, error.value, error.remedy


def _only_product(fleet: ServingFleet, configuration: Configuration, inventory: Inventory) -> str:
    """The nodes' product, where the configuration names none.

    Two products would give it two speeds; only numbers of its own or a preset for all nodes settle that.
    """
    products = inventory.products
    if len(products) <= 1 or fleet.spec.nodes.gpu_preset or _fully_given(configuration):
        return products[0] if products else ""
    subject = f"ServingFleet {fleet.metadata.name}"
    remedy = f"the nodes have {', '.join(products)}: name one here, and add a configuration per product"
    raise InvalidInput(subject, f"spec.configurations[{configuration.name}].gpuProduct", None, remedy)


def _fully_given(configuration: Configuration) -> bool:
    given = (
        configuration.kv_capacity_tokens,
        configuration.prefill_tokens_per_second,
        configuration.decode_microseconds_per_token,
    )
    return None not in given


def _input(resolved: ResolvedConfiguration, block_tokens: int) -> ConfigurationInput:
    """At the assumed batch, with whole KV blocks: an engine has no part of one."""
    limit = float(resolved.max_sequences.value)
    plain = configuration_input(resolved, min(ASSUMED_BATCH, limit))
    return replace(plain, kv_capacity_tokens=floor_to_block(plain.kv_capacity_tokens, block_tokens))
