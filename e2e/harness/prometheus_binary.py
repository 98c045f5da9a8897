"""Find a Prometheus server that can discover pods: an installed one, else one built from its Go module.

Inputs: PATH. Output: the path of a `prometheus`; as a program it prints that, and what it builds. Debian builds its
package without the discovery through the API server, so an installed one is looked into before it is used.
"""

import mmap
import shutil
from pathlib import Path

from e2e.harness.assets import binary

_DISCOVERY = b"github.com/prometheus/prometheus/discovery/kubernetes"


def prometheus_binary() -> Path:
    """Return a `prometheus`, building it on first use.

    Raises:
        BuildFailed: when it does not build.
    """
    found = shutil.which("prometheus")
    if found is not None and discovers_pods(Path(found)):
        return Path(found)
    return binary("prometheus")


def discovers_pods(server: Path) -> bool:
    """Return whether the program has the discovery compiled in: a Go binary names its packages."""
    with server.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(_DISCOVERY) >= 0


if __name__ == "__main__":
    print(f"prometheus: {prometheus_binary()}", flush=True)
