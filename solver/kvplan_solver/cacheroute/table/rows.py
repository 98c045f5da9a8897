"""What the encoder refuses: rows and homes that no reader would take, in shards and in the index alike.

In: :class:`TableKeys`. Out: nothing, or one InvalidInput that names the first fault. Standard library only.
"""

import math
import re
from collections.abc import Iterator
from itertools import chain

from kvplan_solver.cacheroute.table.values import KEY_BITS, SLOT_LONGEST, SLOT_PATTERN, TableKeys
from kvplan_solver.errors import InvalidInput

_SUBJECT = "table keys"


def check_rows(keys: TableKeys) -> None:
    """Refuse what breaks the format.

    Raises:
        InvalidInput: columns of different length, a hash, rate or home number out of range, or a home with
            destinations that are not ascending, a backup among them, or a name that is no slot's.
    """
    lengths = {len(keys.hashes), len(keys.rates), len(keys.home_of)}
    if len(lengths) != 1:
        raise InvalidInput(_SUBJECT, "column lengths", sorted(lengths), "give one row per key")
    fault = next(chain(_wrong_rows(keys), _wrong_homes(keys), _wrong_slots(keys)), None)
    if fault is not None:
        raise fault


def _wrong_rows(keys: TableKeys) -> Iterator[InvalidInput]:
    for hashed in (min(keys.hashes, default=0), max(keys.hashes, default=0)):
        if not 0 <= hashed < 1 << KEY_BITS:
            yield InvalidInput(_SUBJECT, "hashes", hashed, f"use unsigned integers of {KEY_BITS} bits")
    for number in (min(keys.home_of, default=0), max(keys.home_of, default=0)):
        if len(keys.home_of) and not 0 <= number < len(keys.homes):
            yield InvalidInput(_SUBJECT, "home_of", number, f"there are {len(keys.homes)} homes, counted from 0")
    for rate in keys.rates:
        if not 0 <= rate < math.inf:
            yield InvalidInput(_SUBJECT, "rates", rate, "use finite requests per second of 0 or more")


def _wrong_homes(keys: TableKeys) -> Iterator[InvalidInput]:
    for number, home in enumerate(keys.homes):
        if home.fault:
            yield InvalidInput(_SUBJECT, f"homes[{number}]", home.order, home.fault)


def _wrong_slots(keys: TableKeys) -> Iterator[InvalidInput]:
    slots = {slot for home in keys.homes for slot in home.destinations}
    backups = {home.backup for home in keys.homes if home.backup is not None}
    for slot in sorted(slots | backups):
        if len(slot) > SLOT_LONGEST or re.fullmatch(SLOT_PATTERN, slot) is None:
            yield InvalidInput(_SUBJECT, "homes", slot[:80], "name slots like <configuration>-<number>")
