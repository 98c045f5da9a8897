"""What stands for an image on this machine: words before and after the container's command and arguments.

Inputs: a table (YAML), images as pods name them. Outputs: the words to run. An image that the table does not have adds
nothing, so its container must name its command. Tags and digests are ignored; so is the registry, unless it is part of
the table's key.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.agent.api import Object
from e2e.agent.errors import CannotRun

_TAG_OR_DIGEST = re.compile(r"(:[\w.-]+)?(@.+)?$")


@dataclass(frozen=True)
class Image:
    """What runs for an image.

    Attributes:
        before: words before the container's command; `$(NAME)` is expanded like the container's own.
        after: words behind its arguments.
    """

    before: Sequence[str] = ()
    after: Sequence[str] = ()


Table = Mapping[str, Image]


def read(file: Path) -> dict[str, Image]:
    """Return the table in a YAML file: image name → `before`, `after`."""
    return {name: Image(**entry) for name, entry in yaml.safe_load(file.read_text()).items()}


def words(container: Object, table: Table) -> list[str]:
    """Return the words to run for a container.

    Raises:
        CannotRun: when neither the table nor the container says what to run.
    """
    image = _find(container["image"], table)
    command = container.get("command", [])
    if not command and not image.before:
        message = f"image {container['image']!r} is not in the agent's table and the container names no command"
        raise CannotRun("ErrImagePull", message)
    return [*image.before, *command, *container.get("args", []), *image.after]


def _find(name: str, table: Table) -> Image:
    bare = _TAG_OR_DIGEST.sub("", name)
    while bare not in table and "/" in bare:
        bare = bare.partition("/")[2]
    return table.get(bare, Image())
