"""From a container's spec to a process that can be started: words, environment, paths.

Inputs: the container and its setting. Outputs: a prepared container. It reads the API server for what the environment
refers to, each time anew: a restarted container sees new values, as in a cluster.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from e2e.agent import credentials, environment, images, references, rewriting
from e2e.agent.actions import Target
from e2e.agent.api import Object
from e2e.agent.content import Objects
from e2e.agent.errors import CannotRun, Refused
from e2e.agent.expansion import expand
from e2e.agent.setting import Setting

ADDRESS_VARIABLE = "KVPLAN_BED_POD_IP"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Prepared:
    """What to start, and the target of probes and hooks.

    Attributes:
        words: program and arguments.
        target: with environment, working directory and log.
    """

    words: list[str]
    target: Target


async def prepare(container: Object, setting: Setting) -> Prepared:
    """Return what to start for a container.

    Raises:
        CannotRun: when the spec asks for what is not there.
    """
    if "restartPolicy" in container:
        raise CannotRun(
            "CreateContainerConfigError", "a restartPolicy of one container is not supported on process nodes"
        )
    objects = await _objects(container, setting)
    variables = environment.variables(container, setting.pod, objects, _base(setting))
    mounted = rewriting.mounted(container.get("volumeMounts", []), setting.volumes.directories, variables)
    if _ACCOUNT in mounted and "KUBECONFIG" not in variables:
        variables["KUBECONFIG"] = str(_kubeconfig(setting, Path(mounted[_ACCOUNT])))
    real = str(setting.root)  # stays what it is, even under a pod that mounts the directory it lies in, such as /tmp
    rewrite = rewriting.rewriter({**mounted, rewriting.EVERY_ADDRESS: setting.address, real: real})
    words = [rewrite(expand(word, variables)) for word in images.words(container, setting.images)]
    rewritten = {name: value if name == "PATH" else rewrite(value) for name, value in variables.items()}
    return Prepared(words, _target(container, setting, rewritten, rewrite))


def _base(setting: Setting) -> dict[str, str]:
    return {
        "PATH": _PATH,
        "HOME": str(setting.root),
        "HOSTNAME": setting.name,
        "TMPDIR": str(setting.root / "tmp"),
        "LANG": "C.UTF-8",
        ADDRESS_VARIABLE: setting.address,
    }


async def _objects(container: Object, setting: Setting) -> Objects:
    found: dict[tuple[str, str], Object | None] = {}
    for reference in references.of_environment(container):
        path = f"/api/v1/namespaces/{setting.namespace}/{reference.resource}/{reference.name}"
        try:
            found[reference.resource, reference.name] = await setting.api.get(path)
        except Refused as refused:
            if refused.status not in (403, 404):  # the node authorizer says 403 until it has seen the pod
                raise
            found[reference.resource, reference.name] = None
    return found


def _kubeconfig(setting: Setting, account: Path) -> Path:
    file = setting.root / "kubeconfig"
    credentials.write(file, setting.api.server, account, setting.namespace)
    return file


def _target(container: Object, setting: Setting, variables: dict[str, str], rewrite: rewriting.Rewrite) -> Target:
    wanted = rewrite(container.get("workingDir", ""))
    return Target(
        address=setting.address,
        ports={port["name"]: port["containerPort"] for port in container.get("ports", []) if "name" in port},
        environment=variables,
        directory=Path(wanted) if os.path.isdir(wanted) else setting.root,
        log=setting.logs / f"{setting.namespace}_{setting.name}_{container['name']}.log",
        rewrite=rewrite,
        session=setting.session,
    )
