"""One look at one fleet, in numbered steps; everything the operator does happens here.

Inputs: the cluster as the watches have it, measurements, what runs in the background. Output: writes, each fenced and
bound to the version that was looked at, and when to look again. Level-based: a look derives everything from what is
there, so that one too many does nothing and one too few is made up for by the next.
"""

from collections.abc import Callable
from typing import Final

from kvplan_operator.act.executor import Executor, Overtaken
from kvplan_operator.act.ledger import Ledger, ledger
from kvplan_operator.act.promises import promised_elsewhere
from kvplan_operator.kube.errors import AlreadyExists, Conflict, Gone, NotFound
from kvplan_operator.kube.reflector import Key
from kvplan_operator.logs import Decision
from kvplan_operator.metrics import TickOutcome
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.retention import garbage
from kvplan_operator.reconcile.assessing import assessed, hot_of
from kvplan_operator.reconcile.deciding import Decided, decide
from kvplan_operator.reconcile.fleet_task import Again
from kvplan_operator.reconcile.ground import ground_of
from kvplan_operator.reconcile.measuring import MOVING_SECONDS, Measuring
from kvplan_operator.reconcile.memory import Awaited, Memory
from kvplan_operator.reconcile.plans import collect_plans
from kvplan_operator.reconcile.rendering import Look, render_classes, render_fleet, render_plans
from kvplan_operator.reconcile.reporting import report
from kvplan_operator.reconcile.routing import InForce, read_table, route
from kvplan_operator.reconcile.services import Services
from kvplan_operator.reconcile.shelving import Plans, plans_of
from kvplan_operator.reconcile.solving import Solving
from kvplan_operator.reconcile.unreadable import tell_unreadable
from kvplan_operator.route.cycle import TableDecision

AWAITED_SECONDS: Final = 60.0
"""Routers take up a new index within seconds; after this long they are asked with all other measurements."""


class FleetLooks:
    """The looks at one fleet."""

    def __init__(
        self, key: Key, services: Services, memory: Memory, mark: Callable[[], None], solved: Callable[[], None]
    ) -> None:
        """Prepare.

        Args:
            key: namespace and name of the fleet.
            services: shared by all fleets.
            memory: of the fleet.
            mark: asks for another look, when measurements are there.
            solved: asks for one at once, when a solve has ended.
        """
        self._key, self._services, self._memory = key, services, memory
        self._measuring = Measuring(services.sources, mark)
        self._solving = Solving(services.solvers, services.metrics, "/".join(key), solved)

    async def tick(self) -> Again:
        """One look; an object that changed in between is looked at again soon."""
        metrics, fleet = self._services.metrics, "/".join(self._key)
        with metrics.tick_seconds.time():
            try:
                again = await self._look()
            except (Conflict, Gone, AlreadyExists, NotFound, Overtaken):
                metrics.ticks.labels(fleet, TickOutcome.CONFLICT.value).inc()
                self._services.world.named.forget(self._key[0])
                return Again(within_seconds=MOVING_SECONDS)
            except Exception:
                metrics.ticks.labels(fleet, TickOutcome.FAILED.value).inc()
                raise
        metrics.ticks.labels(fleet, TickOutcome.DONE.value).inc()
        return again

    async def _look(self) -> Again:
        services, memory = self._services, self._memory
        # 1 Gather: one frozen snapshot, and the table that the routers have.
        snapshot = await self._gather()
        if snapshot is None:
            return Again()
        published = read_table(snapshot, memory)
        # 2 What plans are made from, or why there is no problem.
        ground = ground_of(snapshot, memory)
        # 3 Plans: what a solve found becomes an object; another solve starts if due.
        plans = await plans_of(services.client, snapshot, ground, memory, self._solving)
        # 4 Choose the plan, let the gate judge it; 5 plan the next step of its rollout.
        decided = decide(snapshot, ground, plans, None if published is None else published.document)
        if not memory.asked:  # nothing is stopped or started before engines and routers were asked once
            decided = decided.held
        # 6 Route: slots, index, keys. A plan that has just come in force is written down first.
        table = await self._route(snapshot, plans, decided)
        # 7 Carry out the step.
        await self._act(snapshot, decided)
        # 8 Say what was found and done, where that differs from what is said already.
        look = Look(snapshot, ground, plans, decided, table, memory)
        await self._say(look)
        return self._again(look)

    async def _gather(self) -> Snapshot | None:
        world, now = self._services.world, self._services.clock()
        fleet = world.fleet(self._key)
        if fleet is None:
            await tell_unreadable(self._services, self._key)
            return None
        if self._memory.moving:
            world.named.forget(self._key[0])  # a Deployment's status follows its pods a moment later
        classes = world.classes_of(fleet)
        self._memory.log.generation = fleet.metadata.generation or 0
        view = await world.view(fleet, classes)
        await self._measuring.refresh(fleet, classes, view, self._memory, now, moving=self._memory.moving)
        version = str((fleet.metadata.model_extra or {}).get("resourceVersion") or "")
        return Snapshot(now, fleet, version, classes, world.plans_of(fleet), view, self._memory.measured)

    async def _route(self, snapshot: Snapshot, plans: Plans, decided: Decided) -> TableDecision | None:
        """The table; None where the plan in force is not written down yet."""
        if decided.new:
            return None
        pursued: InForce | None = None
        if decided.in_force is not None:
            plan = plans.shelf.plans[decided.in_force]
            hot = hot_of(plans.shelf, decided.in_force, self._memory)
            known = assessed(plan, decided.in_force, hot, self._memory)
            pursued = InForce(plan, known if isinstance(known, Planned) else None)
        return await route(self._services.client, snapshot, pursued, decided.step, self._memory)

    async def _act(self, snapshot: Snapshot, decided: Decided) -> None:
        if decided.step is None or not decided.may_act or not decided.step.commands:
            return
        namespace = snapshot.fleet.metadata.namespace
        promised = [seen.footprint for seen in decided.sets for _ in range(seen.promised)]

        def current() -> Ledger:
            world, fleet = self._services.world, snapshot.fleet
            pods, nodes = world.pods_and_nodes()
            elsewhere = promised_elsewhere(world.other_sets(fleet), pods, fleet)
            return ledger(nodes, pods, fleet.spec.nodes.gpu_resource, [*promised, *elsewhere])

        done = await Executor(self._services.client, namespace, current).run(decided.step.commands)
        self._services.world.named.forget(namespace)
        outcome = "; ".join(done)
        numbers = {"step": decided.step.step, "steps": decided.step.steps}
        self._memory.log.decided(Decision("rollout", outcome, outcome, numbers=numbers))

    async def _say(self, look: Look) -> None:
        """Plans first: the fleet's status names them."""
        writer, memory = self._services.writer, self._memory
        for plan, status in render_plans(look):
            await writer.status(plan, status)
        await writer.status(look.snapshot.fleet, render_fleet(look))
        for request_class, status in render_classes(look):
            await writer.status(request_class, status)
        limit = look.snapshot.fleet.spec.plan_policy.history_limit
        await collect_plans(self._services.client, garbage(look.plans.shelf, limit, look.snapshot.now))
        report(look, memory.log, self._services.metrics)

    def _again(self, look: Look) -> Again:
        """Sooner while something is waited for that no watch tells of."""
        self._memory.moving = look.decided.moves or self._awaits_routers(look)
        soon = self._memory.moving or look.decided.new
        return Again(within_seconds=MOVING_SECONDS if soon else None)

    def _awaits_routers(self, look: Look) -> bool:
        """Whether routers should have the newest index any moment; one that stays silent is asked at leisure.

        So is one that starts: it says its name, and is ready once the index names it.
        """
        known, now = None if look.table is None else look.table.acknowledgement, look.snapshot.now
        if look.table is None or known is None or (known.everyone and not look.table.starting):
            self._memory.awaited = None
            return False
        what, awaited = Awaited(None if known.everyone else known.order, look.table.starting), self._memory.awaited
        if awaited is None or awaited[0] != what:
            awaited = self._memory.awaited = (what, now)
        return now - awaited[1] < AWAITED_SECONDS
