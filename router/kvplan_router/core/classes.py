"""Which class a request belongs to: the first of the index whose match holds. Pure.

In: a class's ``match`` and a request. Out: a compiled condition and its answer. Source: docs/contracts/index.md.
"""

from collections.abc import Mapping
from typing import Any

from kvplan_router.core.body import text_field
from kvplan_router.core.values import Request


class Match:
    """The condition of one class entry: all its headers, and its model."""

    __slots__ = ("_exact", "_model", "_model_header", "_prefixes")

    def __init__(self, match: Mapping[str, Any], model_header: str) -> None:
        headers = match.get("headers", ())
        self._exact = tuple((h["name"].lower(), h["exact"]) for h in headers if "exact" in h)
        self._prefixes = tuple((h["name"].lower(), h.get("prefix", "")) for h in headers if "exact" not in h)
        self._model: str | None = match.get("model")
        self._model_header = model_header

    def holds(self, request: Request) -> bool | None:
        """Whether the request meets the condition; None where only the body can tell."""
        for name, wanted in self._exact:
            if request.headers.get(name) != wanted:
                return False
        for name, prefix in self._prefixes:
            value = request.headers.get(name)
            if value is None or not value.startswith(prefix):
                return False
        return True if self._model is None else self._is_model(request)

    def _is_model(self, request: Request) -> bool | None:
        model = request.headers.get(self._model_header)
        if model is None and request.body is None:
            return None
        if model is None:
            model = text_field(request.document, "model")
        return model == self._model
