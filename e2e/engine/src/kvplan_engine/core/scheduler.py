"""Which requests run in a step, and who loses its blocks: vLLM's V1 scheduler, the part that counts.

A step first serves running requests, each taking blocks as it grows; when none is free a victim is
preempted: it loses all blocks and is computed again later, prompt and answer so far. Only a step without
preemption admits waiting requests, each needing free blocks for *all* its tokens (less whole-block prefix
hits), above the watermark and, with the reservation plugin, above what the running ones still have
reserved. Deterministic and pure: the caller keeps the time.
"""

from kvplan_engine.core.block_pool import BlockPool
from kvplan_engine.core.limits import Limits, Policy
from kvplan_engine.core.request import Request
from kvplan_engine.core.step import Step
from kvplan_engine.core.waiting import WaitingQueue


class Scheduler:
    """Waiting and running requests of one engine."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.pool = BlockPool(limits.blocks, caching=limits.prefix_caching)
        self.running: list[Request] = []
        self.waiting = WaitingQueue(by_urgency=limits.policy is Policy.PRIORITY)

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.waiting.append(request)

    def abort(self, request: Request) -> None:
        """Forget a request, wherever it is; one that already left is fine."""
        if request in self.running:
            self.running.remove(request)
            self.pool.release(request.release_blocks())
        else:
            self.waiting.discard(request)

    def schedule(self) -> Step:
        """Choose the work of the next step and hold the blocks for it."""
        step = Step(self.limits.max_batched_tokens)
        self._serve_running(step)
        if not step.preempted:
            self._admit_waiting(step)
        return step

    def complete(self, step: Step) -> list[Request]:
        """Book a computed step: requests that got one more answer token, in order; finished ones leave."""
        produced = [request for request, tokens in step.work.items() if self._advance(request, tokens)]
        for request in produced:
            request.answer_on()
        self._retire([request for request in produced if request.finished])
        return produced

    def _advance(self, request: Request, tokens: int) -> bool:
        """Count computed tokens; True when all are computed, so that the next one is known."""
        request.computed += tokens
        return request.computed == len(request.tokens)

    def _retire(self, done: list[Request]) -> None:
        if done:
            self.running = [request for request in self.running if not request.finished]
        for request in done:
            self.pool.release(request.release_blocks())

    def _serve_running(self, step: Step) -> None:
        for request in tuple(self.running):
            if step.budget <= 0:
                break
            if request in step.preempted:
                continue
            tokens = min(self._wanted(request), step.budget)
            if self._grow(request, tokens, step):
                step.assign(request, tokens)

    def _wanted(self, request: Request) -> int:
        missing = len(request.tokens) - request.computed
        limit = self.limits.long_prefill_tokens
        return min(missing, limit) if limit else missing

    def _grow(self, request: Request, tokens: int, step: Step) -> bool:
        """Give a running request blocks for ``tokens`` more; False when it was itself preempted."""
        while not self._hold(request, tokens):
            victim = self._victim()
            self._preempt(victim, step)
            if victim is request:
                return False
        return True

    def _hold(self, request: Request, tokens: int) -> bool:
        missing = self._blocks(request.computed + tokens) - len(request.blocks)
        if missing > self.pool.free:
            return False
        request.blocks += self.pool.take(max(0, missing))
        self._publish(request, request.computed + tokens)
        return True

    def _publish(self, request: Request, computed: int) -> None:
        """Full blocks can be found from the step that computes them on, as in vLLM."""
        first, full = request.published, computed // self.limits.block_tokens
        if self.limits.prefix_caching and full > first:
            hashes = request.block_hashes(self.limits.block_tokens, first, full)
            self.pool.publish(request.blocks[first:full], hashes)
            request.published = full

    def _victim(self) -> Request:
        if self.limits.policy is Policy.PRIORITY:
            return max(self.running, key=lambda request: request.urgency)
        return self.running[-1]

    def _preempt(self, victim: Request, step: Step) -> None:
        self.running.remove(victim)
        step.withdraw(victim)
        step.preempted.append(victim)
        self.pool.release(victim.release_blocks())
        victim.preemptions += 1
        self.waiting.put_back(victim)

    def _admit_waiting(self, step: Step) -> None:
        while self.waiting and step.budget > 0 and len(self.running) < self.limits.max_running:
            request = self.waiting.head
            hits = self._hits(request)
            tokens = self._first_chunk(request, hits, step.budget)
            if not tokens or not self._fits(request, hits, tokens):
                break
            self._admit(request, hits, tokens, step)

    def _hits(self, request: Request) -> list[int]:
        """Cached blocks of its head; the last token is always computed, for its logits."""
        if not self.limits.prefix_caching:
            return []
        most = (len(request.tokens) - 1) // self.limits.block_tokens
        return self.pool.find(request.block_hashes(self.limits.block_tokens, 0, most))

    def _first_chunk(self, request: Request, hits: list[int], budget: int) -> int:
        """Tokens its first step computes; 0 when it has to wait for a step with room for all."""
        missing = len(request.tokens) - len(hits) * self.limits.block_tokens
        if self.limits.long_prefill_tokens:
            missing = min(missing, self.limits.long_prefill_tokens)
        if missing > budget and not self.limits.chunked_prefill:
            return 0
        return min(missing, budget)

    def _fits(self, request: Request, hits: list[int], tokens: int) -> bool:
        covered = len(hits) * self.limits.block_tokens + tokens
        needed = self._blocks(len(request.tokens) if self.limits.whole_prompt else covered)
        free = self.pool.free - self.pool.free_among(hits)
        return needed - len(hits) <= free - self._kept_free(request, needed)

    def _kept_free(self, newcomer: Request, needed: int) -> int:
        """Blocks that admission leaves alone; none when nothing runs, so that nothing waits for ever."""
        if not self.running:
            return 0
        kept = int(self.limits.watermark * self.limits.blocks)
        if self.limits.reservations:
            kept += sum(self._owed(request, len(request.blocks)) for request in self.running)
            kept += self._owed(newcomer, needed)
        return kept

    def _owed(self, request: Request, held: int) -> int:
        """Blocks reserved for a request beyond ``held``."""
        return max(0, self._blocks(request.reservation_tokens or 0) - held)

    def _admit(self, request: Request, hits: list[int], tokens: int, step: Step) -> None:
        self.waiting.pop()
        self.pool.share(hits)
        request.blocks = list(hits)
        request.published = len(hits)
        request.computed = len(hits) * self.limits.block_tokens
        if not request.preemptions:
            request.cached_tokens = request.computed
        self._hold(request, tokens)
        self.running.append(request)
        step.admitted.append(request)
        step.assign(request, tokens)

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.limits.block_tokens)
