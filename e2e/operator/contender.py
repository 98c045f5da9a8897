"""A process that wants to lead and, while it may, writes its name into a ConfigMap without pause.

Inputs: kubeconfig, namespace, name of Lease and ConfigMap, identity. It ends with 3 when it lost the Lease, and with 0
after SIGTERM, when it has released it.
"""

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import Conflict, LeadershipLost, Unavailable
from kvplan_operator.kube.lease import Leadership
from kvplan_operator.kube.resources import CONFIG_MAPS

DURATION, RENEW, RETRY = 3.0, 2.0, 0.5
LOST = 3


async def write_without_pause(client: Client, leadership: Leadership, namespace: str, name: str, identity: str) -> None:
    """Count up in the ConfigMap, always from the version that was read."""
    await leadership.acquired.wait()
    fenced = client.fenced(leadership.fence)
    while True:
        with suppress(Conflict, Unavailable):
            read = await client.get(CONFIG_MAPS, namespace, name)
            count = int((read.get("data") or {}).get("count", "0")) + 1
            await fenced.replace(CONFIG_MAPS, read | {"data": {"writer": identity, "count": str(count)}})


async def contend(kubeconfig: Path, namespace: str, name: str, identity: str) -> int:
    """Lead as long as possible."""
    client = await Client.connect(kubeconfig)
    leadership = Leadership(client, namespace, name, identity, DURATION, RENEW, RETRY)
    work = asyncio.gather(leadership.run(), write_without_pause(client, leadership, namespace, name, identity))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        await leadership.release()
        return 0
    except LeadershipLost as lost:
        print(lost, flush=True)
    finally:
        await client.close()
    return LOST


if __name__ == "__main__":
    sys.exit(asyncio.run(contend(Path(sys.argv[1]), *sys.argv[2:])))
