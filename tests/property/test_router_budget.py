"""Several router processes, one budget: whatever happens in whatever order, no engine is promised more than Q.

A model of the world: routers that install what the operator published sooner or later, exchange reports, read
engines, crash and come back while their requests run on; an operator that moves shares as the contract says
(a share grows only after its former owner acknowledged the smaller one) and retunes reservations at will.
"""

from dataclasses import dataclass
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvplan_router.core.decide import Router
from kvplan_router.core.in_flight import PeerReport
from kvplan_router.core.prompt_sizes import ENOUGH
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.values import Pick, Ticket, Usage, Wait
from tests.unit.router_world import SECRET, document, home, request, request_class, slot, table

BUDGET = 1_000
SLOTS = ("a-0", "a-1")
NAMES = ("r0", "r1", "r2")
STEP_MILLI = 250
HOMES = {"t": home("a-0"), "u": home("a-0", "a-1")}

names = st.sampled_from(NAMES)


@dataclass
class Running:
    """A request that runs on an engine, whoever remembers it."""

    router: str
    ticket: Ticket
    orphaned: bool = False


class SharedBudget(RuleBasedStateMachine):
    """The world; invariants at the end of the class."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.seed, self.now, self.generation, self.tokens = seed, 0.0, 0, 100
        self.shares = dict(zip(NAMES, (500, 250, 250), strict=True))
        self.growing: tuple[str, int] | None = None
        self.live: list[Running] = []
        self.waiting: dict[int, str] = {}
        self.publish()
        self.routers = {name: self.start(name) for name in NAMES}

    def publish(self) -> None:
        self.generation += 1
        routes = [{"configuration": "a", "shareMilli": 1000, "reservationTokens": self.tokens}]
        head = document(
            generation=self.generation,
            routers=[{"identity": name, "shareMilli": share} for name, share in self.shares.items()],
            slots=[slot(name, budgetTokens=BUDGET) for name in SLOTS],
            classes=[
                request_class(
                    routes=routes,
                    queue={"maxLength": 5, "deadlineMilliseconds": 3_000},
                    reservedPromptTokens=80,
                    cachedPrefixTokens=0,
                )
            ],
        )
        self.published = table(head, HOMES)

    def start(self, name: str) -> Router:
        self.seed += 1
        made = Router(SECRET, CoreSettings(identity=name), Random(self.seed))
        made.install(*self.published)
        made.engines(self.held())
        return made

    def held(self) -> dict[str, int]:
        return {name: sum(r.ticket.holds.slot == name for r in self.live) for name in SLOTS}

    def nobody_lags(self) -> bool:
        return all(router.state().order == self.order(self.generation) for router in self.routers.values())

    def order(self, generation: int) -> tuple[int, int]:
        return self.published[0].order[0], generation

    def run_on(self, name: str, decision: object) -> Running | None:
        if not isinstance(decision, Pick):
            return None
        self.live.append(Running(name, decision.ticket))
        return self.live[-1]

    # ---- traffic

    @rule(name=names, tenant=st.sampled_from(["t", "u", "v", None]), times=st.integers(1, 6))
    def arrive(self, name: str, tenant: str | None, times: int) -> None:
        self.arrive_at(name, tenant, times)

    def arrive_at(self, name: str, tenant: str | None, times: int) -> None:
        for _ in range(times):
            length = "" if tenant == "v" else "400"
            decision = self.routers[name].decide(request(tenant, now=self.now, content_length=length))
            if isinstance(decision, Wait):
                self.waiting[id(decision.ticket)] = name
            self.run_on(name, decision)

    @rule(name=names, size=st.sampled_from([100, 400, 700]))
    def learn_sizes(self, name: str, size: int) -> None:
        """Enough answers of one size that its requests reserve less than planned."""
        for _ in range(ENOUGH):
            decision = self.routers[name].decide(request(None, now=self.now, content_length=str(size)))
            if isinstance(decision, Pick):
                self.routers[name].finish(decision.ticket, Usage(size // 10, 5))
            elif isinstance(decision, Wait):
                self.waiting[id(decision.ticket)] = name

    @rule()
    def flood(self) -> None:
        """Every process takes all it may."""
        for name in NAMES:
            self.arrive_at(name, None, 12)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), twice=st.booleans())
    def end(self, data: st.DataObject, twice: bool) -> None:
        ended = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        if not ended.orphaned:
            router = self.routers[ended.router]
            assert router.finish(ended.ticket)
            assert not (twice and router.finish(ended.ticket))

    @rule(name=names, seconds=st.sampled_from([0.0, 0.5, 2.0]))
    def release(self, name: str, seconds: float) -> None:
        self.now += seconds
        for released in self.routers[name].release(self.now):
            assert self.waiting.pop(id(released.ticket)) == name
            self.run_on(name, released.decision)

    # ---- what routers learn, late and in any order

    @rule(name=names)
    def install(self, name: str) -> None:
        self.routers[name].install(*self.published)

    @rule()
    def catch_up(self) -> None:
        """Everybody installs what is published, and all hear of it."""
        for name in NAMES:
            self.install(name)
        for name in NAMES:
            self.exchange(name)

    @rule(name=names)
    def exchange(self, name: str) -> None:
        reports = []
        for peer, router in self.routers.items():
            state = router.state()
            reports.append(PeerReport(peer, state.in_flight, state.acknowledged, self.now))
        self.routers[name].peers(reports, self.now)

    @rule(name=names)
    def read_engines(self, name: str) -> None:
        self.exchange(name)
        self.routers[name].engines(self.held())

    @precondition(lambda self: self.nobody_lags() and all(r.ticket.tokens <= self.tokens for r in self.live))
    @rule(name=names)
    def crash(self, name: str) -> None:
        """Within the stated limits: what nobody remembers counts as the largest reservation of the index in force."""
        for request_running in self.live:
            request_running.orphaned |= request_running.router == name
        self.waiting = {ticket: of for ticket, of in self.waiting.items() if of != name}
        self.routers[name] = self.start(name)

    # ---- the operator

    @precondition(lambda self: self.growing is None)
    @rule(loser=names, winner=names)
    def take_share(self, loser: str, winner: str) -> None:
        if loser != winner and self.shares[loser] > STEP_MILLI // 2:
            self.shares[loser] -= STEP_MILLI
            self.publish()
            self.growing = winner, self.generation

    @precondition(lambda self: self.growing is not None)
    @rule()
    def give_share(self) -> None:
        winner, generation = self.growing  # type: ignore[misc]
        if all(r.state().acknowledged >= self.order(generation) for r in self.routers.values()):
            self.shares[winner] += STEP_MILLI
            self.growing = None
            self.publish()

    @rule(tokens=st.sampled_from([50, 100, 400, 600]))
    def retune(self, tokens: int) -> None:
        self.tokens = tokens
        self.publish()

    # ---- what always holds

    @invariant()
    def no_engine_is_promised_more_than_its_budget(self) -> None:
        for name in SLOTS:
            assert sum(r.ticket.tokens for r in self.live if r.ticket.holds.slot == name) <= BUDGET

    @invariant()
    def the_books_are_the_truth(self) -> None:
        for name, router in self.routers.items():
            own = [r.ticket for r in self.live if r.router == name and not r.orphaned]
            state = router.state()
            assert sum(state.in_flight.values()) == len(own)
            assert state.waiting == sum(of == name for of in self.waiting.values())

    def teardown(self) -> None:
        """When all requests have ended, nothing is left in any book."""
        for left in getattr(self, "live", []):
            if not left.orphaned:
                self.routers[left.router].finish(left.ticket)
        for router in getattr(self, "routers", {}).values():
            router.release(self.now + 1e6)
            router.engines(dict.fromkeys(SLOTS, 0))
            state = router.state()
            assert (set(state.in_flight.values()), set(state.reserved.values()), state.waiting) == ({0}, {0}, 0)


TestSharedBudget = SharedBudget.TestCase
TestSharedBudget.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
