"""Files of flags: which one a set still lacks, and which ones nobody reads any more.

Inputs: a ``World``. Outputs: commands and ConfigMaps. A file is written before the first set that reads it and goes
after the last one. Pure.
"""

from kvplan_operator.act.commands import Command, CreateConfig
from kvplan_operator.act.config_file import COMPONENT, COMPONENT_LABEL
from kvplan_operator.act.engine_sets import TargetSet
from kvplan_operator.act.world import World
from kvplan_operator.model.pods import Object, labels_of, name_of, part


def missing_file(world: World, target: TargetSet) -> tuple[Command, ...]:
    """The file of flags, unless it is there."""
    if target.config_map is None or name_of(target.config_map) in world.snapshot.cluster.config_maps:
        return ()
    return (CreateConfig(target.config_map),)


def unread_files(world: World) -> list[Object]:
    """Files of flags that neither a set nor a target names."""
    read = {name_of(target.config_map) for target in world.targets.values() if target.config_map is not None}
    for seen in world.sets.values():
        spec = part(seen.item, "spec")
        read |= _volumes(part(spec, "template")) | _volumes(part(part(spec, "leaderWorkerTemplate"), "leaderTemplate"))
    own = [i for i in world.snapshot.cluster.config_maps.values() if labels_of(i).get(COMPONENT_LABEL) == COMPONENT]
    return [item for item in own if name_of(item) not in read]


def _volumes(template: Object) -> set[str]:
    volumes = part(template, "spec").get("volumes") or ()
    return {str(part(volume, "configMap").get("name")) for volume in volumes}
