"""Pieces of PromQL text, safe whatever the values are.

Inputs: metric and label names, label values, windows in seconds. Outputs: expressions. Names must match Prometheus'
own patterns; values are bounded, free of control characters, and escaped, so that nothing can end a string early.
Pure.
"""

import re
from collections.abc import Mapping, Sequence

from kvplan_operator.api.scalars import SERIES_LABEL_PATTERN
from kvplan_solver.errors import InvalidInput

METRIC_PATTERN = r"[a-zA-Z_:][a-zA-Z0-9_:]{0,255}"
LONGEST_VALUE = 512
"""Characters of a label value; names of Kubernetes objects have at most 253."""
PART = "part"
"""Label that tells the parts of a ``labelled_union`` apart."""


def selector(
    metric: str,
    labels: Mapping[str, str],
    *,
    unlike: Mapping[str, str] | None = None,
    beginning: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """``metric{a="…"}``, with ``unlike`` also ``b!="…"``, and with ``beginning`` also ``c=~"(…|…).*"``.

    Raises:
        InvalidInput: a name that Prometheus does not allow, or a value that is too long or holds control characters.
    """
    if not re.fullmatch(METRIC_PATTERN, metric):
        raise InvalidInput("query", "metric", metric, "use letters, digits, '_' and ':'")
    equal = [f'{_name(name)}="{_escaped(name, value)}"' for name, value in labels.items()]
    unequal = [f'{_name(name)}!="{_escaped(name, value)}"' for name, value in (unlike or {}).items()]
    begun = [f'{_name(name)}=~"({_any_of(name, prefixes)}).*"' for name, prefixes in (beginning or {}).items()]
    return f"{metric}{{{','.join(equal + unequal + begun)}}}"


def increase(vector: str, window_seconds: int) -> str:
    """Growth of a counter over a window; resets of the counter are taken out by Prometheus."""
    return f"increase({vector}[{window_seconds}s])"


def sum_by(labels: Sequence[str], expression: str) -> str:
    """The sum over all other labels."""
    return f"sum by ({','.join(map(_name, labels))}) ({expression})"


def labelled_union(parts: Mapping[str, str]) -> str:
    """Several vectors in one answer, each marked with its name in the label ``part``."""
    marked = (f'label_replace({expression},"{PART}","{_name(name)}","","")' for name, expression in parts.items())
    return " or ".join(marked)


def _name(name: str) -> str:
    if not re.fullmatch(SERIES_LABEL_PATTERN, name):
        raise InvalidInput("query", "label", name, "use letters, digits and '_'")
    return name


def _any_of(name: str, prefixes: Sequence[str]) -> str:
    """Alternatives of a regular expression; only names of Kubernetes objects, which hold no sign of one but the dot."""
    for prefix in prefixes:
        if not re.fullmatch(r"[a-z0-9.-]{0,253}", prefix):
            raise InvalidInput("query", f"label {name}", prefix, "use the beginning of an object's name")
    return "|".join(prefix.replace(".", "[.]") for prefix in prefixes)


def _escaped(name: str, value: str) -> str:
    if len(value) > LONGEST_VALUE or not value.isprintable():
        remedy = f"use at most {LONGEST_VALUE} printable characters"
        raise InvalidInput("query", f"label {name}", value, remedy)
    return value.replace("\\", "\\\\").replace('"', '\\"')
