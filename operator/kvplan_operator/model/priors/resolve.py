"""Capacity and speeds of one configuration, each from the most trusted source that has a value.

Order: measurement of the fleet itself > override in the fleet's spec > snapshot > formula; the operator hands on no
measurement of what the spec states, so that there the spec is first. ``maxSequences``
is a setting, not a property: the spec's, else derived from memory.
Inputs: the API's model and configuration, the GPU product of the nodes, measurements, assumptions.
Outputs: values with their sources and a ``SpeedCurve``, or the reason why the configuration cannot run.
Must not: look up a model or a GPU that no value needs, so that a fully measured fleet needs no preset.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kvplan_operator.model.priors.fit import fit_curve
from kvplan_operator.model.priors.formula import (
    Assumptions,
    Group,
    default_max_sequences,
    formula_curve,
    free_bytes,
    kv_capacity_tokens,
)
from kvplan_operator.model.priors.gpus import GIB, find_gpu
from kvplan_operator.model.priors.models import resolve_model
from kvplan_operator.model.priors.profile import Profile, Snapshot, bundled_snapshot
from kvplan_operator.model.priors.resolution import (
    Measurement,
    PriorRequest,
    ResolvedConfiguration,
    UnusableConfiguration,
)
from kvplan_operator.model.priors.source import Source, Sourced
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import ConfigurationInput, Floats
from kvplan_solver.speed_curve import SpeedCurve, at_batch
from kvplan_solver.units import from_micro

__all__ = [
    "Measurement",
    "PriorRequest",
    "ResolvedConfiguration",
    "UnusableConfiguration",
    "configuration_input",
    "resolve_configuration",
]


def resolve_configuration(request: PriorRequest) -> ResolvedConfiguration | UnusableConfiguration:
    """What a configuration can do; the reason instead where its weights leave no memory for KV.

    Raises:
        InvalidInput: a value has to come from presets and the model or the GPU is unknown.
    """
    priors = _Priors(request)
    capacity = _kv_capacity(priors)
    if capacity.value <= 0:
        return UnusableConfiguration(request.configuration, _does_not_fit(priors.group, request.assumptions))
    prefill, decode = _given_prefill(request), _given_decode(request)
    curve = _curve(priors, prefill, decode)
    return ResolvedConfiguration(
        configuration=request.configuration,
        kv_capacity_tokens=capacity,
        max_sequences=_max_sequences(request, capacity.value),
        prefill=_alone(priors, prefill, curve.at(1).prefill_seconds_per_token),
        decode=_alone(priors, decode, curve.at(1).decode_seconds_per_token),
        curve=curve,
        profile=priors.profile if prefill is None or decode is None else None,
    )


def configuration_input(resolved: ResolvedConfiguration, batch: float) -> ConfigurationInput:
    """The solver's configuration with speeds at an assumed batch of sequences per group."""
    configuration = resolved.configuration
    plain = ConfigurationInput(
        name=configuration.name,
        tensor_parallel=configuration.tensor_parallel,
        pipeline_parallel=configuration.pipeline_parallel,
        kv_capacity_tokens=int(resolved.kv_capacity_tokens.value),
        prefill_seconds_per_token=0.0,
        decode_seconds_per_token=0.0,
        max_sequences=int(resolved.max_sequences.value),
        gpu_product=configuration.gpu_product or "",
        spans_nodes=configuration.span_nodes,
    )
    return at_batch(plain, resolved.curve, batch)


@dataclass(frozen=True)
class _Priors:
    """Snapshot and formula, looked up only when a value needs them."""

    request: PriorRequest

    @cached_property
    def snapshot(self) -> Snapshot:
        return bundled_snapshot()

    @cached_property
    def group(self) -> Group:
        request, configuration = self.request, self.request.configuration
        return Group(
            model=resolve_model(request.model),
            gpu=find_gpu(request.gpu_product, request.gpu_preset),
            tensor_parallel=configuration.tensor_parallel,
            pipeline_parallel=configuration.pipeline_parallel,
        )

    @cached_property
    def profile(self) -> Profile | None:
        """The snapshot knows one stage only, and models whose facts nobody changed."""
        group = self.group
        if group.pipeline_parallel > 1:
            return None
        return self.snapshot.find(group.model.snapshot_model, group.gpu.name, group.tensor_parallel)

    @cached_property
    def curve(self) -> SpeedCurve:
        if self.profile is not None:
            return fit_curve(self.profile)
        return formula_curve(self.group, self.request.assumptions)

    @property
    def curve_if_known(self) -> SpeedCurve | None:
        """The curve; None where the model or the GPU is unknown."""
        try:
            return self.curve
        except InvalidInput:
            return None

    def speed_source(self, value: float) -> Sourced:
        """A speed of the curve with where the curve is from."""
        if self.profile is not None:
            return Sourced(value, Source.SNAPSHOT, _profile_name(self.profile, self.snapshot))
        return Sourced(value, Source.FORMULA, _group_name(self.group))


def _kv_capacity(priors: _Priors) -> Sourced:
    request = priors.request
    measured, override = request.measured.kv_capacity_tokens, request.configuration.kv_capacity_tokens
    if measured is not None:
        return Sourced(measured, Source.MEASUREMENT)
    if override is not None:
        return Sourced(override, Source.OVERRIDE, "kvCapacityTokens")
    profile, snapshot = priors.profile, priors.snapshot
    same_share = request.assumptions.memory_utilisation == snapshot.memory_utilisation
    if profile is not None and same_share:
        return Sourced(profile.kv_capacity_tokens, Source.SNAPSHOT, _profile_name(profile, snapshot))
    tokens = kv_capacity_tokens(priors.group, request.assumptions)
    return Sourced(tokens, Source.FORMULA, _group_name(priors.group))


def _given_prefill(request: PriorRequest) -> Sourced | None:
    if request.measured.prefill_seconds_per_token is not None:
        return Sourced(request.measured.prefill_seconds_per_token, Source.MEASUREMENT)
    rate = request.configuration.prefill_tokens_per_second
    return None if rate is None else Sourced(1 / rate, Source.OVERRIDE, "prefillTokensPerSecond")


def _given_decode(request: PriorRequest) -> Sourced | None:
    if request.measured.decode_seconds_per_token is not None:
        return Sourced(request.measured.decode_seconds_per_token, Source.MEASUREMENT)
    step = request.configuration.decode_microseconds_per_token
    return None if step is None else Sourced(from_micro(step), Source.OVERRIDE, "decodeMicrosecondsPerToken")


def _alone(priors: _Priors, given: Sourced | None, value: float) -> Sourced:
    """A speed of one sequence alone, with where it is from."""
    if given is None:
        return priors.speed_source(value)
    return replace(given, value=value)


def _curve(priors: _Priors, prefill: Sourced | None, decode: Sourced | None) -> SpeedCurve:
    """The prior's curve with given columns put over it; a given prefill holds the overhead too.

    Speeds measured at one batch say nothing of another, so they move the prior's curve through their point.
    """
    batch = priors.request.measured.batch
    if prefill is not None and decode is not None:
        base = priors.curve_if_known if batch is not None else None
        if base is None:
            return SpeedCurve.of([1.0], [prefill.value], [decode.value])
    else:
        base = priors.curve
    return SpeedCurve.of(
        base.batch,
        _column(base.batch, base.prefill_seconds_per_token, prefill, batch),
        _column(base.batch, base.decode_seconds_per_token, decode, batch),
        base.overhead_seconds if prefill is None else None,
    )


def _column(grid: Floats, prior: Floats, given: Sourced | None, batch: float | None) -> Floats:
    """One coefficient over the batch: the prior's, the given one, or the prior's scaled to what was measured."""
    if given is None:
        return prior
    there = float(np.interp(batch, grid, prior)) if batch is not None and given.source is Source.MEASUREMENT else 0.0
    return prior * (given.value / there) if there > 0 else np.full(grid.shape, given.value)


def _max_sequences(request: PriorRequest, capacity: float) -> Sourced:
    if request.configuration.max_sequences is not None:
        return Sourced(request.configuration.max_sequences, Source.OVERRIDE, "maxSequences")
    limit = request.assumptions.engine_max_sequences
    derived = default_max_sequences(capacity, request.mean_reservation_tokens, request.headroom, limit)
    return Sourced(derived, Source.FORMULA, f"floor(M/((1+κ)·mean reservation)), at most {limit}")


def _profile_name(profile: Profile, snapshot: Snapshot) -> str:
    key = profile.key
    return f"{key.model} on {key.system} TP {key.tensor_parallel}, {snapshot.library}"


def _group_name(group: Group) -> str:
    name = f"{group.model.name} on {group.gpu.name} TP {group.tensor_parallel} PP {group.pipeline_parallel}"
    over_pcie = group.tensor_parallel > 1 and not group.gpu.fast_link
    return f"{name}; traffic between GPUs over PCIe is not in the formula" if over_pcie else name


def _does_not_fit(group: Group, assumed: Assumptions) -> str:
    per_gpu = group.gpu.memory_bytes * assumed.memory_utilisation - assumed.reserve_bytes
    enough = int(group.model.weights_bytes // per_gpu) + 1 if per_gpu > 0 else None
    remedy = f"use at least {enough} GPUs a group" if enough else "use a GPU with more memory"
    return (
        f"the weights do not fit: {group.model.weights_bytes / GIB:.1f} GiB of weights, "
        f"{per_gpu * group.gpus / GIB:.1f} GiB on {group.gpus} × {group.gpu.name} after "
        f"{assumed.reserve_bytes / GIB:.1f} GiB of buffers each, {-free_bytes(group, assumed) / GIB:.1f} GiB "
        f"short; {remedy}"
    )
