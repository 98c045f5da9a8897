"""What the key planner takes: rates per key, the destinations, and the settings. Frozen and checked.

Symbols of CacheRoute (arXiv 2608.19677): λ_b rate of key b, q_cap, W warm slots of a destination, L[r] load
of a destination. All rates are requests per second. Must not drop a bad rate (``counts`` does, and reports).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvplan_solver.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
Bools = NDArray[np.bool_]
Column = TypeVar("Column", Floats, Ints, Keys)


class Admission(StrEnum):
    """What bounds the admitted keys."""

    SLOTS = "Slots"
    """Equal warm slots (equation (3) of the paper)."""
    BYTES = "Bytes"
    """Bytes of each key's prefix against a limit per destination."""


@dataclass(frozen=True, eq=False)
class KeyRates:
    """Measured keys, column by column, ascending by key: build with :func:`key_rates`, which sorts them.

    Attributes:
        keys: 64-bit key hashes, unique.
        rates: λ_b, requests per second; NaN, infinite and negative values are allowed here.
        errors: upper bound of the measurement error of each rate, requests per second.
        class_of: row of the key's class in ``Fleet.shares``.
        tenant_of: number of the key's tenant.
        size_bytes: bytes of the key's reusable prefix (``Bytes`` admission and re-warm estimates).
        saved_seconds: prefill seconds one hit saves.
    """

    keys: Keys
    rates: Floats
    errors: Floats
    class_of: Ints
    tenant_of: Ints
    size_bytes: Floats
    saved_seconds: Floats

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self, chosen: Ints) -> "KeyRates":
        """The chosen rows, in the chosen order."""
        return KeyRates(**{name: _gather(getattr(self, name), chosen) for name in self.__dataclass_fields__})

    def first(self, count: int) -> "KeyRates":
        """The first rows, without a copy."""
        return KeyRates(**{name: getattr(self, name)[:count] for name in self.__dataclass_fields__})


def key_rates(
    keys: ArrayLike,
    rates: ArrayLike,
    *,
    errors: ArrayLike = 0.0,
    class_of: ArrayLike = 0,
    tenant_of: ArrayLike = 0,
    size_bytes: ArrayLike = 0.0,
    saved_seconds: ArrayLike = 1.0,
) -> KeyRates:
    """Collect columns of equal length (a scalar stands for all rows) into :class:`KeyRates`.

    Rows may come in any order; sorting them here makes every later sum independent of it.

    Raises:
        InvalidInput: columns of different length, a key that occurs twice, or a size or saving that is not
            finite and ≥ 0.
    """
    hashes = np.asarray(keys, dtype=np.uint64)
    measured = KeyRates(
        keys=hashes,
        rates=np.asarray(rates, dtype=np.float64),
        errors=_floats(errors, hashes.size),
        class_of=_ints(class_of, hashes.size),
        tenant_of=_ints(tenant_of, hashes.size),
        size_bytes=_floats(size_bytes, hashes.size),
        saved_seconds=_floats(saved_seconds, hashes.size),
    )
    for name in KeyRates.__dataclass_fields__:
        shape = getattr(measured, name).shape
        require(shape == (hashes.size,), "key rates", name, shape, f"use {hashes.size} rows")
    for name in ("size_bytes", "saved_seconds"):
        require_numbers("key rates", name, getattr(measured, name))
    order = np.argsort(hashes)
    _require_unique(hashes[order])
    return measured if np.array_equal(order, np.arange(order.size)) else measured.rows(order)


@dataclass(frozen=True, eq=False)
class Fleet:
    """The destinations, in ascending order of slot name, and what each may take.

    Attributes:
        destinations: slot names, R of them, ascending by code point.
        weights: c_r, planned load or relative capacity, length R; 0 takes no key.
        warm_slots: W per destination, length R.
        cold_load: expected load that no listed key explains, requests per second, length R.
        shares: π of each class on each destination, shape (I, R); keys of a class go only where it is > 0.
        byte_limits: bytes of prefixes a destination may hold, length R (``Bytes`` admission).
    """

    destinations: tuple[str, ...]
    weights: Floats
    warm_slots: Ints
    cold_load: Floats
    shares: Floats
    byte_limits: Floats

    def __post_init__(self) -> None:
        _check_fleet(self)

    @cached_property
    def eligible(self) -> Bools:
        """Where the keys of a class may live, shape (I, R)."""
        return np.asarray((self.shares > 0) & (self.weights > 0)[None, :])

    def without(self, destination: int) -> "Fleet":
        """The same fleet, with one destination that takes no keys."""
        weights = self.weights.copy()
        weights[destination] = 0.0
        return replace(self, weights=weights)


def fleet(
    destinations: Sequence[str],
    *,
    warm_slots: ArrayLike,
    weights: ArrayLike = 1.0,
    cold_load: ArrayLike = 0.0,
    shares: ArrayLike = 1.0,
    byte_limits: ArrayLike = 0.0,
) -> Fleet:
    """Build a :class:`Fleet`; a scalar stands for all destinations, rows follow ``destinations`` as given.

    Raises:
        InvalidInput: names not unique, a column of the wrong length, or a number that is not finite and ≥ 0.
    """
    order = np.array(sorted(range(len(destinations)), key=lambda r: destinations[r]), dtype=np.int64)
    size = order.size
    share_rows = np.atleast_2d(np.asarray(shares, dtype=np.float64))
    return Fleet(
        tuple(destinations[r] for r in order),
        _floats(weights, size)[order],
        _ints(warm_slots, size)[order],
        _floats(cold_load, size)[order],
        np.broadcast_to(share_rows, (share_rows.shape[0], size))[:, order],
        _floats(byte_limits, size)[order],
    )


@dataclass(frozen=True)
class Settings:
    """How to plan keys.

    Attributes:
        q_cap: requests per second of one key that one destination may carry, see ``capacity``.
        eviction_window_seconds: how long an idle prefix survives in a cache; None where unknown (no floor).
        admission: what bounds the admitted keys.
        hysteresis: bonus on the rank of keys admitted before.
        tenant_share: largest fraction of the warm slots that one of several tenants may take.
        epsilon: ε, slack of the largest load over LPT that a replan may use to keep keys in place.
        knee: load at which a destination's p99 bends upwards; ε shrinks as loads approach it. None: ε stays.
        backups: whether to plan a backup for every key with one destination.
        measurement_seconds: window the rates were counted over; None where unknown.
    """

    q_cap: float
    eviction_window_seconds: float | None = None
    admission: Admission = Admission.SLOTS
    hysteresis: float = 0.1
    tenant_share: float = 1.0
    epsilon: float = 0.05
    knee: float | None = None
    backups: bool = True
    measurement_seconds: float | None = None

    def __post_init__(self) -> None:
        require_number("key planner", "q_cap", self.q_cap, above=0.0)
        for name in ("hysteresis", "epsilon", "eviction_window_seconds", "knee", "measurement_seconds"):
            value = getattr(self, name)
            if value is not None:
                require_number("key planner", name, value)
        share = self.tenant_share
        require(0 < share <= 1, "key planner", "tenant_share", share, "use a fraction above 0, at most 1")


def require(condition: bool, subject: str, field: str, value: object, remedy: str) -> None:
    """Raise InvalidInput unless the condition holds."""
    if not condition:
        raise InvalidInput(subject, field, value, remedy)


def require_number(subject: str, field: str, value: float, above: float | None = None) -> None:
    """Raise InvalidInput unless the value is finite and ≥ 0 (or > ``above``)."""
    good = bool(np.isfinite(value)) and (value >= 0 if above is None else value > above)
    remedy = "use a finite number of 0 or more" if above is None else f"use a finite number above {above:g}"
    require(good, subject, field, value, remedy)


def _gather(column: Column, chosen: Ints) -> Column:
    """The chosen rows; a scalar that stands for all rows stays one (most columns of large tables)."""
    if column.size and column.strides == (0,):
        return np.broadcast_to(column[:1], chosen.shape)
    return column[chosen]


def require_numbers(subject: str, field: str, values: Floats) -> None:
    """Raise InvalidInput, showing the first offender, unless all values are finite and ≥ 0."""
    bad = values[~(np.isfinite(values) & (values >= 0))]
    require(not bad.size, subject, field, bad[:1].tolist(), "use finite numbers of 0 or more")


def _floats(values: ArrayLike, size: int) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    return np.broadcast_to(column, (size,)) if column.ndim == 0 else column


def _ints(values: ArrayLike, size: int) -> Ints:
    column = np.asarray(values, dtype=np.int64)
    return np.broadcast_to(column, (size,)) if column.ndim == 0 else column


def _require_unique(ascending: Keys) -> None:
    twice = ascending[1:][ascending[1:] == ascending[:-1]]
    require(not twice.size, "key rates", "key", [f"{k:016x}" for k in twice[:3]], "give each key one row")


def _check_fleet(f: Fleet) -> None:
    size = len(f.destinations)
    require(size > 0, "fleet", "destinations", size, "give at least one destination")
    ascending = all(a < b for a, b in pairwise(f.destinations))
    require(ascending, "fleet", "destinations", f.destinations, "give unique names in ascending order")
    require(f.shares.shape[-1] == size, "fleet", "shares", f.shares.shape, f"use shape (classes, {size})")
    for name in ("weights", "warm_slots", "cold_load", "byte_limits", "shares"):
        column: Floats = np.asarray(getattr(f, name), dtype=np.float64)
        require(column.shape[-1:] == (size,), "fleet", name, column.shape, f"use {size} values")
        require_numbers("fleet", name, column)
