"""The settings of an operator as far as its Deployment and ConfigMap show them.

Input: the operator's Deployment. Output: ``Settings``, None where they are not visible (another file, no permission) or
are refused. Tokens are files inside the operator's pods and are never seen here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kvplan_cli.cluster.reading import Object
from kvplan_cli.cluster.session import Session
from kvplan_cli.doctor.attempts import attempt
from kvplan_cli.doctor.findings import Unknown
from kvplan_operator.errors import SettingsError
from kvplan_operator.kube.resources import CONFIG_MAPS
from kvplan_operator.model.pods import part, parts
from kvplan_operator.settings import Settings, settings_from

FILE = "settings.yaml"


async def operator_settings(session: Session, deployment: Object) -> Settings | None:
    """What the operator of a Deployment was told."""
    spec = part(part(part(deployment, "spec"), "template"), "spec")
    namespace = deployment["metadata"]["namespace"]
    names = [str(part(volume, "configMap")["name"]) for volume in parts(spec, "volumes") if part(volume, "configMap")]
    text = ""
    for name in names:
        found = await attempt(session.client.find(CONFIG_MAPS, namespace, name))
        if found is None or isinstance(found, Unknown):
            return None
        text = str(part(found, "data").get(FILE, text))
    try:
        return settings_from(text, dict(_variables(spec)))
    except SettingsError:
        return None


def _variables(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Variables with a value of their own; those that Kubernetes fills in say nothing about fleets."""
    for container in parts(spec, "containers"):
        for entry in parts(container, "env"):
            if "value" in entry and "$(" not in str(entry["value"]):
                yield str(entry["name"]), str(entry["value"])
