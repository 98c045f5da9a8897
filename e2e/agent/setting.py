"""What the containers of one pod share.

Inputs and outputs: none; it is a value. `pod` is the API server's latest word and changes while the pod lives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from e2e.agent import images
from e2e.agent.api import Api, Object
from e2e.agent.volumes import Volumes


@dataclass
class Setting:
    """The surroundings of a container.

    Attributes:
        api: the API server.
        pod: the pod, with its address in its status.
        address: of the pod.
        root: directory of the pod: home, working directory, temporary files.
        logs: directory of the containers' logs.
        volumes: of the pod.
        images: what stands for an image.
        session: for probes and hooks.
        back_off_scale: factor on the pauses before restarts.
        changed: to be called when a container's state has changed.
    """

    api: Api
    pod: Object
    address: str
    root: Path
    logs: Path
    volumes: Volumes
    images: images.Table
    session: aiohttp.ClientSession
    back_off_scale: float
    changed: Callable[[], None]

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return str(self.pod["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])
