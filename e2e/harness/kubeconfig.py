"""Write kubeconfig files: who talks to which API server, and how it proves itself.

Inputs: a server URL, its authority, a client certificate or a token. Outputs: one file, readable by its owner alone.
"""

from collections.abc import Mapping
from pathlib import Path

import yaml


def write(file: Path, server: str, authority: Path, user: Mapping[str, str]) -> Path:
    """Write a kubeconfig with one context and return its path.

    Args:
        file: where to.
        server: URL of the API server.
        authority: certificate that signed the server's.
        user: the user entry, such as `{"client-certificate": ..., "client-key": ...}` or `{"token": ...}`.
    """
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bed", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "user", "user": dict(user)}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "user"}}],
        "current-context": "bed",
    }
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def with_certificate(file: Path, server: str, authority: Path, client: Path) -> Path:
    """Write a kubeconfig that proves its user by a certificate; certificate and key are in one file."""
    return write(file, server, authority, {"client-certificate": str(client), "client-key": str(client)})
