"""Our own objects, parsed once per version; one that does not parse is told of once and counts as absent.

Inputs: raw objects. Outputs: typed ones, or why there is none: an object of a later version of the API may have fields
that this one does not know. Does no I/O but logging.
"""

import logging
from typing import Any, TypeVar

from pydantic import ValidationError

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.problems import problems_of
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.reflector import Key

T = TypeVar("T", ServingFleet, RequestClass, RoutingPlan)
_LOG = logging.getLogger(__name__)


class Parsed:
    """What is known of objects; only those that still exist are kept."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Key], tuple[str, Any, str]] = {}

    def get(self, model: type[T], key: Key, raw: Object) -> T | None:
        """The typed object; None where it does not parse."""
        parsed: T | None = self._of(model, key, raw)[1]
        return parsed

    def fault(self, model: type[T], key: Key, raw: Object) -> str:
        """Why an object does not parse; empty where it does."""
        return self._of(model, key, raw)[2]

    def forget(self, model: type[T], key: Key) -> None:
        """Drop an object that went."""
        self._known.pop((model.__name__, key), None)

    def _of(self, model: type[T], key: Key, raw: Object) -> tuple[str, Any, str]:
        version, place = str(raw["metadata"].get("resourceVersion")), (model.__name__, key)
        found = self._known.get(place)
        if found is None or found[0] != version:
            self._known[place] = found = (version, *_parse(model, key, raw))
        return found


def _parse(model: type[T], key: Key, raw: Object) -> tuple[T | None, str]:
    try:
        return model.model_validate(raw), ""
    except ValidationError as error:
        problems = problems_of(f"{model.__name__} {key[0]}/{key[1]}", model, dict(raw), error)
    fault = "; ".join(map(str, problems))
    _LOG.error("left out: %s", fault)
    return None, fault
