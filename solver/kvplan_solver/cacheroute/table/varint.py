"""Unsigned LEB128 integers: seven bits a byte, low bits first, high bit set while more follow."""

from collections.abc import Iterable

from kvplan_solver.cacheroute.table.refused import RefusalReason, TableRefused

_MAX_SHIFT = 63
"""Ten bytes hold 64 bits; a longer run is an attack or a tear."""


def append(out: bytearray, values: Iterable[int]) -> None:
    """Append each value, 0 ≤ value < 2^64, in its shortest form."""
    add = out.append
    for number in values:
        rest = number
        while rest > 0x7F:
            add(rest & 0x7F | 0x80)
            rest >>= 7
        add(rest)


def read(data: bytes, position: int, count: int) -> tuple[list[int], int]:
    """Read ``count`` values from ``position``; return them and the position after the last.

    Raises:
        TableRefused: the data end inside a value, a value is over-long, or ``count`` exceeds what is left.
    """
    if count > len(data) - position:
        raise _malformed(f"{count} values announced, {len(data) - position} bytes left")
    values: list[int] = []
    try:
        for _ in range(count):
            byte = data[position]
            position += 1
            if byte > 0x7F:
                byte, position = _long(data, position, byte & 0x7F)
            values.append(byte)
    except IndexError:
        raise _malformed("ends inside a number") from None
    return values, position


def _long(data: bytes, position: int, low: int) -> tuple[int, int]:
    """Finish a value of more than one byte."""
    shift = 7
    while (byte := data[position]) > 0x7F:
        low |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if shift > _MAX_SHIFT:
            raise _malformed("over-long number")
    if byte == 0:
        raise _malformed("number not in its shortest form")
    return low | byte << shift, position + 1


def _malformed(detail: str) -> TableRefused:
    return TableRefused(RefusalReason.MALFORMED_SHARD, detail)
