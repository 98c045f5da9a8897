"""Make a container's words true on this machine: mount paths become real paths, 0.0.0.0 the pod's own address.

Inputs: volume mounts and the directories of the volumes. Outputs: a function from text to text. Pure. A path is
replaced where it stands as a path of its own, alone, after `=`, `:` or `://`, or with more path behind it; not inside a
longer word. A process that opens a mount path that nobody told it does not find it: this is no mount.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from e2e.agent import expansion
from e2e.agent.api import Object

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - searched for, so that no pod listens there
Rewrite = Callable[[str], str]
_NOT_INSIDE = r"(?:(?<=://)|(?<![\w./-]))"
_NOT_GOING_ON = r"(?![\w.-])"


def mounted(mounts: Iterable[Object], volumes: Mapping[str, Path], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the real path behind each mount path.

    Args:
        mounts: a container's `volumeMounts`.
        volumes: directory of each volume of the pod.
        environment: for `subPathExpr`.
    """
    return {mount["mountPath"].rstrip("/"): _real(mount, volumes, environment) for mount in mounts}


def rewriter(replacements: Mapping[str, str]) -> Rewrite:
    """Return a function that makes all replacements in one pass, the longest first."""
    if not replacements:
        return lambda text: text
    longest_first = sorted(replacements, key=len, reverse=True)
    words = "|".join(re.escape(word) for word in longest_first)
    pattern = re.compile(f"{_NOT_INSIDE}(?:{words}){_NOT_GOING_ON}")
    return lambda text: pattern.sub(lambda found: replacements[found[0]], text)


def _real(mount: Object, volumes: Mapping[str, Path], environment: Mapping[str, str]) -> str:
    inside = mount.get("subPath") or expansion.expand(mount.get("subPathExpr", ""), environment)
    return str(volumes[mount["name"]] / inside)
