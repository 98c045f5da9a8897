"""How kopf logs in: as the operator's own client does."""

import asyncio
from pathlib import Path

import yaml

from kvplan_operator.reconcile.handlers import connection_of

SERVER = "https://127.0.0.1:6443"


def kubeconfig(directory: Path, **user: str) -> Path:
    """A kubeconfig of one user."""
    content = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": SERVER, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }  # fmt: skip
    file = directory / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


def test_a_token_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of the file\n")
    found = asyncio.run(connection_of(kubeconfig(tmp_path, tokenFile=str(tmp_path / "token"))))
    assert (found.server, found.token, found.insecure) == (SERVER, "of the file", True)


def test_a_token_in_the_kubeconfig_is_used(tmp_path: Path) -> None:
    found = asyncio.run(connection_of(kubeconfig(tmp_path, token="abc")))  # noqa: S106 - of nobody
    assert found.token == "abc"  # noqa: S105
