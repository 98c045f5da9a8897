"""What a write leaves on an engine set about itself: when groups were restarted, and when somebody undid our writes.

Inputs: a set as it was seen, what is about to be written, the time. Outputs: annotations that go out in the same
request as the change, so that neither can be without the other. Somebody undid a write where a field no longer has the
value that kvplan noted when it wrote it, and kvplan has to write it again. ``gate.history`` reads what is kept here.
Notes of a set that goes move to one that stays. Pure.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kvplan_operator.act.engine_sets import TargetSet
from kvplan_operator.act.observed_groups import ObservedSet
from kvplan_operator.api.labels import (
    RESTARTED_ANNOTATION,
    SET_BACK_ANNOTATION,
    WRITTEN_REPLICAS_ANNOTATION,
    WRITTEN_TEMPLATE_ANNOTATION,
)
from kvplan_operator.gate.history import all_instants, noted, with_instants
from kvplan_operator.model.pods import Object, part

_KEPT = (RESTARTED_ANNOTATION, SET_BACK_ANNOTATION)
_DIGITS = 16


def scaling_notes(seen: ObservedSet, replicas: int, now: float, *, restarts: bool = False) -> dict[str, str]:
    """Annotations that go with a new number of groups.

    Args:
        seen: the set.
        replicas: that are about to be written.
        now: seconds since the epoch.
        restarts: whether a group that serves stops.
    """
    written = noted(seen.item, WRITTEN_REPLICAS_ANNOTATION)
    notes = {WRITTEN_REPLICAS_ANNOTATION: str(replicas)}
    if restarts:
        notes |= _with(seen.item, RESTARTED_ANNOTATION, now)
    if written not in ("", str(seen.replicas)):
        notes |= _with(seen.item, SET_BACK_ANNOTATION, now)
    return notes


def patched(target: TargetSet, seen: ObservedSet, running: int, now: float) -> TargetSet:
    """An adopted target with the annotations that go with other flags.

    Server-side apply takes away what it no longer names, so that what stands there is named again.

    Args:
        target: as the plan wants it.
        seen: the Deployment.
        running: groups that Kubernetes restarts.
        now: seconds since the epoch.
    """
    template = _digest(part(part(target.manifest, "spec"), "template"))
    notes = {name: text for name in _KEPT if (text := noted(seen.item, name))}
    notes |= {WRITTEN_TEMPLATE_ANNOTATION: template} | _with(seen.item, RESTARTED_ANNOTATION, now, running)
    if noted(seen.item, WRITTEN_TEMPLATE_ANNOTATION) == template:
        notes |= _with(seen.item, SET_BACK_ANNOTATION, now)
    return annotated(target, notes)


def instead_of(target: TargetSet, edited: ObservedSet, now: float) -> TargetSet:
    """A target that takes the place of a set whose template somebody changed: that undid what kvplan wrote."""
    return annotated(target, _with(edited.item, SET_BACK_ANNOTATION, now))


def inherited(survivor: ObservedSet, going: Iterable[ObservedSet], now: float) -> dict[str, str]:
    """Annotations that a set must get so that nothing is forgotten when others are deleted; empty where it has all.

    Args:
        survivor: that stays.
        going: sets that are about to be deleted.
        now: seconds since the epoch.
    """
    items = [survivor.item, *(seen.item for seen in going)]
    merged = {name: with_instants("", all_instants(items, name), now) for name in _KEPT}
    had = {name: with_instants("", all_instants([survivor.item], name), now) for name in _KEPT}
    return {name: text for name, text in merged.items() if text != had[name]}


def annotated(target: TargetSet, notes: Mapping[str, str]) -> TargetSet:
    """A target whose manifest carries more annotations."""
    metadata = dict(part(target.manifest, "metadata"))
    metadata["annotations"] = dict(part(metadata, "annotations")) | dict(notes)
    return replace(target, manifest={**target.manifest, "metadata": metadata})


def _with(item: Object, annotation: str, now: float, times: int = 1) -> dict[str, str]:
    text = with_instants(noted(item, annotation), [now] * times, now)
    return {annotation: text} if text else {}


def _digest(template: Mapping[str, Any]) -> str:
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
