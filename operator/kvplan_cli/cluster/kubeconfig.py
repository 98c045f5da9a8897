"""kubectl's search for a kubeconfig, and the namespace of a context.

Inputs: a ``Place``, the environment. Output: a frozen ``Access``. Reads kubeconfig files, never credentials out of
them: those are the client's business. Several files in ``$KUBECONFIG`` are merged as kubectl does: the first that
states something wins, files that do not exist are passed over.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kvplan_cli.cluster.place import Place
from kvplan_cli.errors import CommandError, reason_of

VARIABLE = "KUBECONFIG"
DEFAULT_NAMESPACE = "default"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REMEDY = f"give a file with --kubeconfig, or set {VARIABLE}"


@dataclass(frozen=True)
class Access:
    """How a cluster is reached.

    Attributes:
        kubeconfig: one file, or several as ``$KUBECONFIG`` lists them; None for a pod's service account.
        context: of the kubeconfig; None for its current one.
        namespace: asked for, else that of the context or of the service account.
    """

    kubeconfig: Path | None
    context: str | None
    namespace: str


def access_of(place: Place, environment: Mapping[str, str] | None = None, account: Path = ACCOUNT) -> Access:
    """Find the kubeconfig and the namespace.

    Raises:
        CommandError: there is none, it cannot be read, or it has no such context.
    """
    files = _files(place, os.environ if environment is None else environment)
    if not files:
        return _from_account(place, account)
    found = _context([_read(file) for file in files], place.context, files)
    namespace = place.namespace or str(found.get("namespace") or DEFAULT_NAMESPACE)
    return Access(Path(os.pathsep.join(map(str, files))), place.context or None, namespace)


def _files(place: Place, environment: Mapping[str, str]) -> list[Path]:
    if place.kubeconfig:
        return [Path(place.kubeconfig)]
    listed = [Path(part).expanduser() for part in environment.get(VARIABLE, "").split(os.pathsep) if part]
    if listed:
        present = [file for file in listed if file.exists()]
        if not present:
            raise CommandError(VARIABLE, f"{listed[0]} does not exist", _REMEDY)
        return present
    usual = Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"
    return [usual] if usual.exists() else []


def _from_account(place: Place, account: Path) -> Access:
    if not (account / "token").exists():
        raise CommandError("cluster", "there is no kubeconfig", _REMEDY)
    if place.context:
        raise CommandError("--context", "there is no kubeconfig, only the pod's service account", _REMEDY)
    file = account / "namespace"
    own = file.read_text(encoding="utf-8").strip() if file.exists() else DEFAULT_NAMESPACE
    return Access(None, None, place.namespace or own)


def _read(file: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise CommandError(file, f"it cannot be read ({reason_of(error)})", _REMEDY) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise CommandError(file, "it is no kubeconfig (no YAML)", _REMEDY) from None
    if not isinstance(document, dict):
        raise CommandError(file, "it is no kubeconfig (no mapping)", _REMEDY)
    return document


def _context(documents: Sequence[Mapping[str, Any]], wanted: str, files: Sequence[Path]) -> Mapping[str, Any]:
    """The context that is asked for, or the current one."""
    shown = ", ".join(map(str, files))
    name = wanted or next((str(d["current-context"]) for d in documents if d.get("current-context")), "")
    entries = [entry for document in documents for entry in document.get("contexts") or () if isinstance(entry, dict)]
    known = {str(entry.get("name")): entry.get("context") or {} for entry in reversed(entries)}
    listed = ", ".join(sorted(known)) or "none"
    if not name:
        raise CommandError(shown, "it has no current context", f"choose one with --context; there are {listed}")
    if name not in known:
        raise CommandError("--context" if wanted else shown, f"there is no context {name!r}", f"there are {listed}")
    context: Mapping[str, Any] = known[name]
    return context
