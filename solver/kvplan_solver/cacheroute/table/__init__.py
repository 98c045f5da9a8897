"""The routing table on the wire: encoder, decoder and look-up. Standard library only.

Writers call :func:`encode_table`; readers call :func:`read_index`, fetch the shards it names, and call
:func:`read_table`. The contract is docs/contracts/index.md and docs/contracts/table-format.md; of the
solver this package imports only ``errors``, so that a router carries nothing else.
"""

from kvplan_solver.cacheroute.table.decode import check_succession, read_table
from kvplan_solver.cacheroute.table.encode import EncodedTable, ShardFile, encode_table, stored_hash_bits
from kvplan_solver.cacheroute.table.index import (
    FORMAT,
    INDEX_BYTES_MAX,
    INLINE_KEYS_MAX,
    TOP_KEYS_MAX,
    Index,
    json_schema,
    read_index,
    write_index,
)
from kvplan_solver.cacheroute.table.refused import RefusalReason, TableRefused
from kvplan_solver.cacheroute.table.shard import SHARD_BYTES_MAX
from kvplan_solver.cacheroute.table.values import Home, Table, TableKeys

__all__ = [
    "FORMAT",
    "INDEX_BYTES_MAX",
    "INLINE_KEYS_MAX",
    "SHARD_BYTES_MAX",
    "TOP_KEYS_MAX",
    "EncodedTable",
    "Home",
    "Index",
    "RefusalReason",
    "ShardFile",
    "Table",
    "TableKeys",
    "TableRefused",
    "check_succession",
    "encode_table",
    "json_schema",
    "read_index",
    "read_table",
    "stored_hash_bits",
    "write_index",
]
