"""What the engines of one configuration are started with: the plan's flags and those that every engine of kvplan has.

Inputs: a planned group, the fleet, the version. Outputs: flags by name, and those left out because the version does not
know them. ``enable-force-include-usage`` lets routers count output tokens; ``shutdown-timeout`` lets requests finish
after SIGTERM (vLLM's own default drops them). They are not part of a plan: they decide nothing. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import Group
from kvplan_operator.plan.engine_capabilities import CAPABILITIES, unknown_flags, version_of_image

OWNED_FLAGS = frozenset(CAPABILITIES) - {"nnodes", "node-rank", "master-addr", "headless"}
"""Flags that kvplan sets or removes; the rest of a command line is the user's."""


@dataclass(frozen=True)
class EngineSettings:
    """Flags of one configuration.

    Attributes:
        flags: value by name, empty for a switch.
        omitted: wanted, but unknown to the version.
    """

    flags: Mapping[str, str]
    omitted: tuple[str, ...] = ()


def engine_settings(fleet: ServingFleet, group: Group, image: str, seen_version: str | None = None) -> EngineSettings:
    """Flags of one planned configuration.

    Args:
        fleet: states the version, where it does.
        group: as planned.
        image: of the engine's container; its tag states the version otherwise.
        seen_version: what a running engine of an adopted Deployment says, if neither of the two does.
    """
    drain = {"shutdown-timeout": str(fleet.spec.rollout.drain_timeout_seconds), "enable-force-include-usage": ""}
    wanted = drain | {flag.name: flag.value for flag in group.engine_flags}
    version = fleet.spec.engine.version or version_of_image(image) or seen_version
    omitted = unknown_flags(version, wanted)
    return EngineSettings({name: wanted[name] for name in sorted(wanted) if name not in omitted}, omitted)
