"""vLLM's scheduler, with admission that leaves the reservations of running requests free.

Inputs: vLLM's own requests; the reservation is part of their ids (``reservation``). Output: the same schedule, with
requests admitted later where stock vLLM would admit them and preempt soon after. Only admission changes: a running
request grows as ever, and where nothing runs the first request is always admitted, so nothing can wait for ever. Must
not: be loaded on versions it was not tried on.
"""

from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.request import RequestStatus
from vllm.version import __version__

from kvplan_vllm.reservation import Holding, blocks_to_leave, reservation_tokens, to_blocks
from kvplan_vllm.versions import check_version

_ADMITTED_FROM = (RequestStatus.WAITING, RequestStatus.PREEMPTED)


class ReservingScheduler(AsyncScheduler):
    """Admits a request only where its reservation, and the rest of everyone else's, fits the cache."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check_version(__version__)
        super().__init__(*args, **kwargs)
        groups = len(self.kv_cache_config.kv_cache_groups)
        if groups != 1:
            raise ValueError(f"kvplan_vllm reserves in one KV cache group; this model has {groups}: leave it out")
        self._prefix_blocks: dict[str, int] = {}
        self._allocate = self.kv_cache_manager.allocate_slots
        self.kv_cache_manager.allocate_slots = self._allocate_reserving

    def _allocate_reserving(
        self, request: Any, num_new_tokens: int, num_new_computed_tokens: int = 0, *rest: Any, **options: Any
    ) -> Any:
        if request.status in _ADMITTED_FROM and self.running:
            left = self._left_free(request, num_new_tokens)
            options["reserved_blocks"] = options.get("reserved_blocks", 0) + left
        blocks = self._allocate(request, num_new_tokens, num_new_computed_tokens, *rest, **options)
        if blocks is not None and request.status in _ADMITTED_FROM:
            self._remember(request.request_id, num_new_computed_tokens // self.block_size)
        return blocks

    def _left_free(self, request: Any, num_new_tokens: int) -> int:
        reserved = to_blocks(reservation_tokens(request.request_id), self.block_size)
        newcomer = Holding(reserved, to_blocks(num_new_tokens, self.block_size))
        return blocks_to_leave((self._holding(other) for other in self.running), newcomer)

    def _holding(self, request: Any) -> Holding:
        held = len(self.kv_cache_manager.get_blocks(request.request_id).blocks[0])
        reserved = to_blocks(reservation_tokens(request.request_id), self.block_size)
        return Holding(reserved, held - self._prefix_blocks.get(request.request_id, 0))

    def _remember(self, request_id: str, prefix_blocks: int) -> None:
        """Note how much of a request's blocks is a found prefix, and forget those that no longer run."""
        running = {other.request_id for other in self.running}
        kept = {name: blocks for name, blocks in self._prefix_blocks.items() if name in running}
        self._prefix_blocks = kept | {request_id: prefix_blocks}
