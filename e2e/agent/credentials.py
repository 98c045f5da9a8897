"""Kubeconfig files: the agent reads its own, and writes one for each pod that has a service account.

Inputs: a kubeconfig with certificate or token (exec plugins are not supported). Outputs: server, TLS context and
headers for a client; a file whose token is read anew by its user, so that a rotated token is seen.
"""

import base64
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True)
class Credentials:
    """How to reach an API server, and as whom.

    Attributes:
        server: URL.
        tls: context with the authority's certificate and, if any, the client's.
        headers: with the bearer token, if any.
    """

    server: str
    tls: ssl.SSLContext
    headers: dict[str, str]


def read(kubeconfig: Path) -> Credentials:
    """Return the credentials of the current context.

    Raises:
        KeyError: when the file lacks what its context names.
    """
    content = yaml.safe_load(kubeconfig.read_text())
    context = _named(content, "contexts", content["current-context"])["context"]
    cluster = _named(content, "clusters", context["cluster"])["cluster"]
    user = _named(content, "users", context["user"])["user"]
    return Credentials(cluster["server"], _tls(cluster, user), _headers(user))


def write(file: Path, server: str, account: Path, namespace: str) -> None:
    """Write a kubeconfig for the holder of a service-account volume.

    Args:
        file: where to.
        server: URL of the API server.
        account: the volume's directory, with `token` and `ca.crt`.
        namespace: of the context.
    """
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bed", "cluster": {"server": server, "certificate-authority": f"{account}/ca.crt"}}],
        "users": [{"name": "pod", "user": {"tokenFile": f"{account}/token"}}],
        "contexts": [{"name": "pod", "context": {"cluster": "bed", "user": "pod", "namespace": namespace}}],
        "current-context": "pod",
    }
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def _named(content: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in content[kind] if entry["name"] == name)
    return found


def _tls(cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    authority = _text(cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority)
    certificate, key = _text(user, "client-certificate"), _text(user, "client-key")
    if certificate and key:
        # The ssl module takes client certificates from files alone.
        with tempfile.NamedTemporaryFile("w") as pem:
            pem.write(f"{certificate}\n{key}")
            pem.flush()
            context.load_cert_chain(pem.name)
    return context


def _headers(user: dict[str, Any]) -> dict[str, str]:
    token = user.get("token") or (Path(user["tokenFile"]).read_text().strip() if "tokenFile" in user else None)
    return {"Authorization": f"Bearer {token}"} if token else {}


def _text(entry: dict[str, Any], name: str) -> str | None:
    """Return a PEM that is in the kubeconfig itself or in a file that it names."""
    if f"{name}-data" in entry:
        return base64.b64decode(entry[f"{name}-data"]).decode()
    return Path(entry[name]).read_text() if name in entry else None
