"""What one agent is told on its command line."""

from dataclasses import dataclass
from pathlib import Path

from e2e.agent.images import Table


@dataclass(frozen=True)
class Settings:
    """The settings of an agent.

    Attributes:
        root: directory for the pods' volumes and working directories; emptied at the end.
        logs: directory for the containers' output.
        images: what stands for an image.
        back_off_scale: factor on the pauses before a container is restarted; 1 is the kubelet's.
        lease_seconds: for which a renewal of the node's Lease holds.
        renew_seconds: between two renewals.
    """

    root: Path
    logs: Path
    images: Table
    back_off_scale: float = 1.0
    lease_seconds: int = 40
    renew_seconds: float = 10.0
